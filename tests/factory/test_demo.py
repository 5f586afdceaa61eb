"""A local site has something to show, once."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from factory.demo import ensure_examples
from factory.models import AgentAttempt, FactoryRun


@pytest.mark.django_db
def test_an_owner_gets_one_run_and_one_imported_session_and_no_second_pair(
    settings: Any, tmp_path: Path
) -> None:  # IM-1
    settings.STATE_DIR = tmp_path
    settings.FACTORY_SNAPSHOT_ROOT = tmp_path / "snapshots"
    settings.FACTORY_MIN_FREE_BYTES = 0
    ada = User.objects.create_user("ada")
    for _ in range(2):
        ensure_examples(ada)
    built, imported = FactoryRun.objects.filter(owner=ada).order_by("pk")
    assert (built.state, built.source_format) == ("succeeded", "")
    assert [one.send_kind for one in built.attempts.order_by("number")] == [
        "initial",
        "initial",
        "gate_retry",
        "initial",
    ]
    assert imported.source_format
    assert imported.attempts.count() == 2
    assert AgentAttempt.objects.filter(run=imported, tool_calls__is_error=True).exists()
