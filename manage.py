#!/usr/bin/env python
"""Django's command line. Without SECRET_KEY in the environment it works on this machine's local state."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentlab.settings")
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
