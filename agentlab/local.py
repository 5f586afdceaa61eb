"""What a clone on a developer's machine works with when nothing is configured.

A state folder outside the clone holds the database, the generated secret key, the private Redis' socket and
the spools, so that nothing secret or personal ever lies among the repository's files. Two clones have two
state folders. Production sets SECRET_KEY, and then none of this applies (`up` excepted: it is the local site).
"""

import contextlib
import hashlib
import os
import secrets
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
LOCAL = "AGENTLAB_LOCAL"
STATE = "AGENTLAB_STATE_DIR"


def state_dir() -> Path:
    """The folder of everything local: `AGENTLAB_STATE_DIR`, else one per clone under the user's state home."""
    if named := os.environ.get(STATE):
        return Path(named).absolute()
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    clone = hashlib.sha256(str(PROJECT).encode()).hexdigest()[:8]
    return Path(base).expanduser() / "agentlab" / f"{PROJECT.name}-{clone}"


def is_local() -> bool:
    return os.environ.get(LOCAL) == "1"


def use_local_defaults(command: list[str]) -> None:
    """Mark this process (and its children) as local unless it is configured for production."""
    if command == ["up"] or not (os.environ.get("SECRET_KEY") or os.environ.get("SECRET_KEY_FILE")):
        os.environ[LOCAL] = "1"
        os.environ[STATE] = str(state_dir())  # absolute: children work in folders of their own


def use_django() -> None:
    """For a program that is no command of `manage.py`: its database and models, of the same site."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentlab.settings")
    use_local_defaults([])
    import django

    django.setup()


def make_private(folder: Path) -> Path:
    """The folder, made if need be, readable by its owner alone. Exits with one line where it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
    except OSError as error:
        sys.exit(f"agentlab: cannot use {folder}: {error.strerror}. {STATE} names another folder.")
    return folder


def secret(name: str) -> str:
    """A secret kept in the state folder, generated once. Two processes that start together get the same one.

    Exits with one line where it cannot be kept.
    """
    path = make_private(state_dir()) / name
    part = path.with_name(f".{name}.{os.getpid()}")
    try:
        if not path.exists():
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                file.write(secrets.token_urlsafe(48))
            with contextlib.suppress(FileExistsError):
                os.link(part, path)  # whole or not at all, and never in place of another's
        value = path.read_text()
    except OSError as error:
        sys.exit(f"agentlab: cannot keep {path}: {error.strerror}")
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
    if not value:
        sys.exit(f"agentlab: {path} is empty; delete it and start again.")
    return value


def socket_path(folder: Path) -> Path:
    """Where the private Redis listens: in the state folder, or, where that path is too long for a unix socket
    (about 100 bytes), in a folder of the same user's under the temporary directory."""
    path = folder / "redis" / "redis.sock"
    if len(os.fsencode(path)) < 100:
        return path
    import tempfile

    short = hashlib.sha256(str(folder).encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"agentlab-{os.getuid()}-{short}" / "redis.sock"
