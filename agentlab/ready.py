"""The ready file: how another program learns where the local site is and how to sign in."""

import contextlib
import json
import os
from pathlib import Path


class ReadyFileError(Exception):
    """Says in one line why the file cannot be written."""


class ReadyFile:
    """A JSON file that appears whole, readable by its owner alone, once the site answers; and goes with the site."""

    def __init__(self, path: Path) -> None:
        """Raises ReadyFileError where the file is there already, or its folder cannot be written."""
        self.path = path
        self._part = path.with_name(f".{path.name}.{os.getpid()}")
        self._written = False
        if path.exists() or path.is_symlink():
            raise ReadyFileError(f"{path} exists already: the ready file must be a new one")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise ReadyFileError(f"{path} cannot be written: {path.parent} is no folder of yours")

    def write(self, *, url: str, users: dict[str, str], service_key: str) -> None:
        """Raises ReadyFileError where somebody else has made it in the meantime."""
        body = json.dumps({"url": url, "users": users, "service_key": service_key}, indent=2) + "\n"
        try:
            with os.fdopen(os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(body)
            os.link(self._part, self.path)  # unlike a rename it never replaces what is there
            self._written = True
        except OSError as error:
            raise ReadyFileError(f"{self.path} cannot be written: {error.strerror}") from None
        finally:
            self._part.unlink(missing_ok=True)

    def remove(self) -> None:
        """Passwords do not lie about once the site that they open is gone."""
        if self._written:
            with contextlib.suppress(OSError):
                self.path.unlink()
