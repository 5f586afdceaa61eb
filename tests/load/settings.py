"""The settings of a world's own process: those of a test run, with a database number of the capture Redis that was
given to this world alone."""

import os

from tests.settings import *  # noqa: F403

CACHES["capture"]["LOCATION"] = os.environ["AGENTLAB_LOAD_REDIS_URL"]  # noqa: F405
