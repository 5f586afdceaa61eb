"""The studies that several tests of a run and of its pages start from."""

import pytest
from django.contrib.auth.models import User

from agentlab.persona.models import StudyRun
from agentlab.persona.study import read_study

from .making import crowd, written
from .running import CONTENT, made

SMALL = {
    "tier_b": {"budget": 9, "above": 0.2},
    "cap": 8,
    "reflection": {"batch": 3, "at": 4},
    "probes": {"every": 5, "opinions": ["levy"]},
}


@pytest.fixture
def plan(tmp_path):
    """A study of 5 personas × 45 turns."""
    return read_study(written(tmp_path, crowd(5, 45, **SMALL)))


@pytest.fixture
def olga() -> User:
    return User.objects.create_user("olga")


@pytest.fixture
def run(tmp_path, olga) -> StudyRun:
    return made(tmp_path, olga, CONTENT)
