#!/usr/bin/env python
"""Django's command line. Without SECRET_KEY in the environment it works on this machine's local state."""

import contextlib
import io
import os
import signal
import sys

OURS = {"agentlab", "capture", "factory"}
OWN_COMMANDS = {"up", "play", "study", "factory"}  # they say themselves what is wrong with the database


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentlab.settings")
    _open_streams()
    try:
        try:
            run()
        finally:
            _flush()
    except KeyboardInterrupt:  # before a command listens for it itself
        sys.exit(130)
    except BrokenPipeError:  # `| head` has seen enough
        _silence()
        sys.exit(128 + signal.SIGPIPE)
    except ModuleNotFoundError as error:
        if not error.name or error.name.partition(".")[0] in OURS:
            raise
        sys.exit(f"agentlab: no module {error.name} in {sys.executable}: `make install`, and run .venv/bin/python")


def run() -> None:
    from agentlab.local import use_local_defaults

    use_local_defaults(sys.argv[1:2])
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    from agentlab.common.databases import pool_warnings, why_it_ended

    own = not OWN_COMMANDS.isdisjoint(sys.argv[1:2])
    watching: contextlib.AbstractContextManager[list[str]] = contextlib.nullcontext([]) if own else pool_warnings()
    with watching as why:
        try:
            execute_from_command_line(sys.argv)
        except ImproperlyConfigured as error:
            sys.exit(f"agentlab: {error}")
        except BrokenPipeError:
            raise
        except Exception as error:
            if "--traceback" in sys.argv or not (said := why_it_ended(error, why)):
                raise
            sys.exit(f"agentlab: {said}")


def _open_streams() -> None:
    """Whatever the locale says, what is told may be in any script; and a stream that was closed hears nothing."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: PTH123, SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _flush() -> None:
    """What still waits must be told while somebody can be told that it cannot."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk
        _silence()
        sys.exit(f"agentlab: {error.strerror}")


def _silence() -> None:
    """Nothing more is written to standard output, not even at the end what still waits in its buffer."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
