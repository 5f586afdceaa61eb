"""What the environment gives a process, and what that means for the one model endpoint that all rooms share. It imports
no Django, so that workers of a study can use it."""

import os
from urllib.parse import urlsplit

OPENAI = "https://api.openai.com/v1"  # named, or the client would look into the environment once more
NO_ENDPOINT = "openai models need OPENAI_API_KEY for OpenAI itself, or OPENAI_BASE_URL for any other endpoint"


def given(name: str) -> str:
    """The variable's text, or that of the file that `NAME_FILE` names (for secrets). Empty counts as unset.

    Raises ValueError in one line, which quotes no value.
    """
    value, path = os.environ.get(name, ""), os.environ.get(f"{name}_FILE", "")
    if value and path:
        raise ValueError(f"{name} and {name}_FILE are both set: keep one of them")
    return _held(name, path) if path else value


def _held(name: str, path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            value = file.read().strip()
    except OSError as error:
        raise ValueError(f"{name}_FILE: {error.strerror}: {path}") from None
    except ValueError:
        raise ValueError(f"{name}_FILE: not UTF-8 text: {path}") from None
    if not value:
        raise ValueError(f"{name}_FILE: nothing is in it: {path}")
    return value


def check_endpoint(base_url: str, api_key: str) -> None:
    """The one rule for agents, factory and personas: a key alone is for OpenAI itself, an address may do without a key.

    Raises ValueError in one line. The address is not quoted: a password may be in it.
    """
    if not base_url and not api_key:
        raise ValueError(NO_ENDPOINT)
    if base_url and not _is_address(base_url):
        raise ValueError("OPENAI_BASE_URL is no address: http://host:port/v1, or https://")


def _is_address(text: str) -> bool:
    try:
        url = urlsplit(text)
        return url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
    except ValueError:
        return False
