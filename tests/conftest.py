"""Fixtures that every room's tests share."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
import redis

SHARED_DATA = Path(__file__).parent / "data"

# A busy machine is no fault of the code: how long an example may take is never part of a test.
hypothesis.settings.register_profile("agentlab", deadline=None)
hypothesis.settings.load_profile("agentlab")


def pytest_configure() -> None:
    """A shell's background job has SIGINT ignored, and so would every process that a test starts and interrupts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def capture_redis_server() -> Iterator[str]:
    """The URL of a running Redis: the one given, else a private one for this worker."""
    from django.conf import settings

    from agentlab.private_redis import PrivateRedis

    if not settings.AGENT_CAPTURE_REDIS_URL.startswith("unix://" + os.environ["AGENTLAB_STATE_DIR"]):
        yield settings.AGENT_CAPTURE_REDIS_URL
        return
    with PrivateRedis(settings.PRIVATE_REDIS_SOCKET) as server:
        yield server.url


@pytest.fixture
def capture_redis(capture_redis_server: str) -> Iterator[redis.Redis]:
    """A client of an empty capture Redis."""
    client = redis.Redis.from_url(capture_redis_server)
    client.flushdb()
    yield client
    client.flushdb()
    client.close()
