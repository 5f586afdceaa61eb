"""Three hundred real profiles before twenty real claims: one trace, whoever runs it; and it can be checked."""

import contextlib

import pytest
from django.db import connection

from agentlab.persona.executors import Inline, open_workers
from agentlab.persona.models import StudyRun
from agentlab.persona.replaying import verify
from agentlab.persona.runner import Runner
from agentlab.persona.runs import create
from agentlab.persona.study import read_study

from .making import DATA, study, written

CONTENT = study(
    name="Claims",
    topics=["truth"],
    personas={"load": str(DATA / "gss" / "personas.jsonl"), "format": "gss"},
    stimuli={"load": str(DATA / "oasis" / "claims.jsonl"), "limit": 20, "source": "Feed", "stances": {"truth": 0.6}},
    first_beliefs={
        "truth": {
            "field": "political_views",
            "values": {"Liberal": 0.4, "Slightly liberal": 0.2, "Moderate": 0.0, "Conservative": -0.4},
        }
    },
    schedule={"order": "shuffled"},
    tier_b={"budget": 100, "above": 0.2},
    probes={"every": 10, "fields": ["age"], "opinions": ["truth"]},
)


@pytest.mark.django_db
def test_three_hundred_real_profiles_give_one_trace_that_verifies(tmp_path) -> None:  # PE-4 PE-6
    plan = read_study(written(tmp_path, CONTENT))
    plain = Runner(create(plan, executor="inline"), Inline()).go()
    assert (plain.status, plain.turns) == (StudyRun.Status.COMPLETE, 300 * 20)
    with contextlib.closing(open_workers("processes:2")) as workers:
        pooled = Runner(create(plan, executor="processes:2"), workers).go()
    assert pooled.trace_sha256 == plain.trace_sha256
    assert pooled.answered == plain.answered <= 100
    assert verify(pooled) is None
    with connection.cursor() as cursor:
        place = [pooled.pk, 213, 7, 0]
        where = "WHERE run_id = %s AND persona = %s AND turn = %s AND sequence = %s"
        cursor.execute(f"SELECT payload FROM study_trace {where}", place)
        payload = bytearray(cursor.fetchone()[0])
        payload[20] ^= 1
        cursor.execute(f"UPDATE study_trace SET payload = %s {where}", [bytes(payload), *place])
    found = verify(pooled)
    assert (found.persona, found.turn, found.sequence) == (plan.personas[213].id, 7, 0)
