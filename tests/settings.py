"""The project's settings under test: a state folder and a Redis of the test run's own, plain static files.

Each worker process imports this once, so each has its own. DATABASE_URL and AGENT_CAPTURE_REDIS_URL put real
servers in place of the embedded ones; then each worker takes a Redis database number of its own.
"""

import atexit
import os
import shutil
import tempfile

_state = tempfile.mkdtemp(prefix="agentlab-test-")
atexit.register(shutil.rmtree, _state, ignore_errors=True)
os.environ.update(
    AGENTLAB_STATE_DIR=_state, SECRET_KEY="for tests alone", ALLOWED_HOSTS="127.0.0.1,localhost,testserver"
)
os.environ.setdefault("STATIC_ROOT", f"{_state}/static")
os.makedirs(os.environ["STATIC_ROOT"], exist_ok=True)  # noqa: PTH103 - whitenoise warns where there is none
os.environ.setdefault("SECURE_SSL_REDIRECT", "false")
os.environ.setdefault("AGENT_CAPTURE_SERVICE_KEY", "test-service-key")
os.environ.setdefault("MIN_TURN_MS", "0")
if _given := os.environ.get("AGENT_CAPTURE_REDIS_URL"):
    _number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) + 1
    os.environ["AGENT_CAPTURE_REDIS_URL"] = f"{_given.split('?')[0].rstrip('/')}?db={_number}"

from agentlab.settings import *  # noqa: E402, F403

if DATABASES["default"]["ENGINE"].endswith("sqlite3"):  # noqa: F405
    DATABASES["default"]["TEST"] = {"NAME": f"{_state}/test.sqlite3"}  # noqa: F405 - a file: threads share it
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
