"""What tests of the factory's pages ask with."""

from collections.abc import Callable
from typing import Any

from django.test import Client

from factory.models import AgentAttemptInput
from factory.workflow import RunEnd
from tests.conftest import SHARED_DATA

Run = Callable[..., tuple[int, RunEnd]]
IMAGE = SHARED_DATA / "media/pillow/hopper.png"


def page(client: Client, path: str, status: int = 200, **headers: str) -> str:
    response = client.get(path, headers=headers)
    assert response.status_code == status, f"{path}: {response.status_code}"
    return response.content.decode()


def input_of(run_id: int, **facts: Any) -> AgentAttemptInput:
    return AgentAttemptInput.objects.filter(attempt__run_id=run_id, **facts).order_by("pk")[0]
