"""The environment of what the factory starts: a short list of names, and nothing else of ours.

A coding agent runs commands that a model thought of, so whatever is in its environment may end in a transcript.
Deny, then allow: our SECRET_KEY, service key, database and Redis URLs are simply not on the list.
"""

import os
from collections.abc import Mapping

ALLOWED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR"),
        *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
        *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    }
)


def child_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The allowed part of our environment, `LC_*` included, and `extra`."""
    kept = {name: value for name, value in os.environ.items() if name in ALLOWED or name.startswith("LC_")}
    return kept | dict(extra or {})
