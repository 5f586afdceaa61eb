"""What looks like somebody's secret in a tool's words, hidden on the page that shows them.

A coding agent's tools print environments and configuration, and a session that was imported brings what lay on its
author's disk. Only shapes that are hardly ever anything else are hidden: a mask over innocent words would be a lie
about what the agent read. What is stored is untouched, and the raw text has it.
"""

import re

from factory.outcomes import MASK

_NAMES = r"(?:SECRET|SECRET_KEY|TOKEN|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY)"
_SHAPES = re.compile(
    "|".join(
        [
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
            r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",  # AWS
            r"\bgh[pousr]_[A-Za-z0-9]{36,255}\b|\bgithub_pat_[A-Za-z0-9_]{22,255}\b",
            r"\bglpat-[A-Za-z0-9_-]{20,255}\b",
            r"\bsk-(?=[A-Za-z_-]{0,255}[0-9])[A-Za-z0-9_-]{20,255}",  # OpenAI, Anthropic and those who do as they do
            r"\bhf_[A-Za-z0-9]{30,255}\b|\bnpm_[A-Za-z0-9]{36}\b",
            r"\bxox[abeprs]-[A-Za-z0-9-]{10,255}\b",  # Slack
            r"\bAIza[0-9A-Za-z_-]{35}\b",  # Google
            r"\beyJ[A-Za-z0-9_-]{6,4096}\.eyJ[A-Za-z0-9_-]{6,4096}\.[A-Za-z0-9_-]{5,4096}",  # a signed token
            r"(?<=://)[^\s/:@]{1,255}:[^\s/@]{1,255}(?=@)",  # user and password of a URL
            r"(?i:\b(?:bearer|basic) )[A-Za-z0-9+/=._~-]{16,4096}",
        ]
    )
)
# An environment as `env`, a shell or an `.env` file writes it; a reference to another variable is no value.
_ASSIGNED = re.compile(rf"(?<![A-Za-z0-9_])([A-Z0-9_]{{0,80}}{_NAMES}=)([\"']?)([^\s\"'$]{{6,4096}})")


def without_secrets(text: str) -> tuple[str, int]:
    """The text with MASK for each value that looks like a secret, and how many there were."""
    text, assigned = _ASSIGNED.subn(lambda match: f"{match[1]}{match[2]}{MASK}", text)
    text, shaped = _SHAPES.subn(MASK, text)
    return text, assigned + shaped
