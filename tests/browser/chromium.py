"""Which Chromium, and with which flags."""

import os
from pathlib import Path

FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


def path_of_chromium() -> str:
    """The browser's path: `CHROMIUM`, else Debian's. Raises FileNotFoundError where there is none."""
    path = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    if not Path(path).exists():
        raise FileNotFoundError(f"no Chromium at {path}; CHROMIUM names one")
    return path
