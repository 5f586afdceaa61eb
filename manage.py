#!/usr/bin/env python
"""Django's command line. Without SECRET_KEY in the environment it works on this machine's local state."""

import io
import os
import sys

OURS = {"agentlab", "capture", "factory"}


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentlab.settings")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # whatever the locale says: what is told may be in any script
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        run()
    except KeyboardInterrupt:  # before a command listens for it itself
        sys.exit(130)
    except ModuleNotFoundError as error:
        if not error.name or error.name.partition(".")[0] in OURS:
            raise
        sys.exit(f"agentlab: no module {error.name} in {sys.executable}: `make install`, and run .venv/bin/python")


def run() -> None:
    from agentlab.local import use_local_defaults

    use_local_defaults(sys.argv[1:2])
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"agentlab: {error}")


if __name__ == "__main__":
    main()
