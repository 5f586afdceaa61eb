"""Django admin: kept turns and the audit, to look at and search, inert and unchanged."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agentlab.agents.models import Agent
from agentlab.common import audit
from agentlab.common.models import AuditEntry, Deed
from capture.models import AgentCallRecord
from capture.pinning import pin
from capture.prompt import Prompt
from tests.capture.making import HAND, TABLE, play, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("capture_redis")]
LIST = "/admin/capture/agentcallrecord/"


def keep(count: int = 1, agent: str = "rocky", hand: int = HAND, **fields: object) -> AgentCallRecord:
    play([turn(agent, index, hand=hand, **fields) for index in range(count)])
    pin(TABLE, hand, agent_id=agent, actor=None)
    return AgentCallRecord.objects.filter(agent_id=agent, hand_number=hand).first()


@pytest.mark.parametrize("term", ["rocky", TABLE, "7", "rocky-v3"])
def test_kept_turns_are_found_by_agent_table_hand_and_version(admin_client: Client, term: str) -> None:  # VW-8
    mine = keep()
    keep(agent="nit", hand=8)
    AgentCallRecord.objects.filter(agent_id="nit").update(table_id="other")
    page = admin_client.get(LIST, {"q": term}).content.decode()
    assert f"{LIST}{mine.pk}/change/" in page
    assert "1 agent call record" in page


def test_a_kept_turn_says_its_agents_name(admin_client: Client, admin_user: User) -> None:  # VW-8
    Agent.objects.create(id="rocky", name="Rocky", owner=admin_user)
    row = keep()
    for path in (LIST, f"{LIST}{row.pk}/change/"):
        assert "Rocky (rocky)" in admin_client.get(path).content.decode()


def test_odd_searches_find_nothing_and_break_nothing(admin_client: Client) -> None:  # VW-8, SF-4
    keep()
    for term in ("a\0b", "9" * 40, "'; DROP", "%", "\u202e"):
        assert admin_client.get(LIST, {"q": term}).status_code in (200, 302)


def test_a_kept_turn_is_shown_whole_as_inert_text(admin_client: Client) -> None:  # VW-8, SF-2
    hostile = "<script>alert(1)</script> $5 … $10 ![a](http://10.0.0.1/x)\0\ud83e\u202e"
    row = keep(prompt=Prompt(hostile, hostile), response=hostile, reasoning=hostile, decision=[{"t": hostile}])
    page = admin_client.get(f"{LIST}{row.pk}/change/").content.decode()
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt; $5 … $10") == 5
    assert "<script>alert" not in page
    assert "10.0.0.1/x&quot;" not in page
    assert 'name="response"' not in page


def test_what_was_not_captured_reads_so(admin_client: Client) -> None:  # CAP-7
    row = keep(knowledge=None, decision=None, reasoning=None)
    assert admin_client.get(f"{LIST}{row.pk}/change/").content.decode().count("not captured") == 3


def test_a_damaged_row_is_said_not_a_crash(admin_client: Client) -> None:  # SF-4
    row = keep()
    AgentCallRecord.objects.update(facts=b"\xc1")
    assert "cannot be shown" in admin_client.get(f"{LIST}{row.pk}/change/").content.decode()


def test_nothing_can_be_added_changed_or_deleted(admin_client: Client) -> None:  # VW-8
    row = keep()
    for path in (f"{LIST}add/", f"{LIST}{row.pk}/delete/"):
        assert admin_client.get(path).status_code == 403
        assert admin_client.post(path, {"post": "yes"}).status_code == 403
    assert admin_client.post(f"{LIST}{row.pk}/change/", {"agent_id": "nit"}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    admin_client.post(LIST, chosen)
    assert AgentCallRecord.objects.get().agent_id == "rocky"


def test_the_list_costs_the_same_for_one_row_and_for_forty_and_fetches_no_content(admin_client: Client) -> None:
    # VW-8
    costs = []
    for hand, count in enumerate((1, 39), start=1):
        keep(count, hand=hand)
        with CaptureQueriesContext(connection) as queries:
            admin_client.get(LIST)
        costs.append(len(queries))
        assert not any("remainder" in query["sql"] for query in queries)
    assert costs[0] == costs[1]


def test_the_audit_is_listed_and_searched_and_never_changed(admin_client: Client) -> None:  # VW-8
    ann = User.objects.create_user("ann")
    audit.record(ann, Deed.OPENED, ["rocky", "nit", "rocky"], table_id=TABLE, hand_number=HAND)
    audit.record(None, Deed.KEPT, ["bluffy"])
    page = admin_client.get("/admin/common/auditentry/", {"q": "ann"}).content.decode()
    assert ("rocky" in page, "nit" in page, "bluffy" in page) == (True, True, False)
    entry = AuditEntry.objects.first()
    assert admin_client.post(f"/admin/common/auditentry/{entry.pk}/change/", {"deed": "kept"}).status_code == 403
    assert AuditEntry.objects.count() == 3


def test_an_entry_outlasts_the_account_that_it_names() -> None:  # VW-8
    ann = User.objects.create_user("ann")
    audit.record(ann, Deed.WHISPERED, ["rocky"])
    ann.delete()
    assert AuditEntry.objects.get().actor_name == "ann"
