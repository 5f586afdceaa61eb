"""Lists of tables that only grow: none of them reads the whole table, and every row can be reached."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agentlab.agents.models import Agent, InferenceCharge
from agentlab.common import admin_lists
from agentlab.common.models import AuditEntry, Deed
from tests.capture.making import charge, charge_all

pytestmark = pytest.mark.django_db
AUDIT, LEDGER = "/admin/common/auditentry/", "/admin/agents/inferencecharge/"
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


def noted(count: int, *, at: datetime = NOON, **fields: object) -> None:
    made = {"actor_name": "ann", "deed": Deed.OPENED, "agent_id": "rocky"} | fields
    rows = AuditEntry.objects.bulk_create(AuditEntry(**made) for _ in range(count))
    for place, row in enumerate(rows):
        row.at = at - timedelta(minutes=place)  # auto_now_add has its own idea
    AuditEntry.objects.bulk_update(rows, ["at"])


def listed(client: Client, url: str, **query: object) -> HttpResponse:
    response = client.get(url, query)
    assert response.status_code == 200
    return response


def rows_of(response: HttpResponse) -> list[object]:
    return list(response.context["cl"].result_list)  # type: ignore[attr-defined]


def test_a_list_counts_no_further_than_it_is_leafed_through_and_says_so(  # VW-8
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_lists, "MOST", 120)
    noted(121)
    with CaptureQueriesContext(connection) as queries:
        page = listed(admin_client, AUDIT).content.decode()
    assert "the first 120 audit entries; search or filter to reach the others" in page
    assert "120 results" not in page
    counts = [query["sql"] for query in queries if "COUNT(*)" in query["sql"]]
    assert counts
    assert all("LIMIT 121" in sql for sql in counts)
    assert len(rows_of(listed(admin_client, AUDIT, p=3))) == 20
    assert admin_client.get(AUDIT, {"p": 4}).status_code == 302


def test_a_list_that_is_leafed_through_to_its_end_says_how_long_it_is(  # VW-8
    admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_lists, "MOST", 120)
    noted(120)
    page = listed(admin_client, AUDIT).content.decode()
    assert "120 audit entries" in page
    assert "the first" not in page


@pytest.mark.parametrize("column", range(9))
def test_a_list_sorts_by_nothing_that_no_index_sorts_by(admin_client: Client, column: int) -> None:  # VW-8
    charge_all(charge(index=0), charge("nit", 1))
    page = listed(admin_client, LEDGER, o=column)
    by_time = page.context["cl"].list_display[column] == "played_at"  # type: ignore[attr-defined]
    assert [row.agent_id for row in rows_of(page)] == (["rocky", "nit"] if by_time else ["nit", "rocky"])


def test_the_calendar_leads_to_every_row(admin_client: Client) -> None:  # VW-8
    for day in (NOON, NOON.replace(day=28, hour=0), NOON.replace(day=1), datetime(2025, 2, 28, 23, 59, tzinfo=UTC)):
        noted(1, at=day)
    assert choices(admin_client, "") == ["2026", "2025"]
    assert choices(admin_client, "2026")[:2] == ["2026", "November 2026"]
    assert choices(admin_client, "2026-11")[2:31] == [f"{day:02} November" for day in range(29, 0, -1)]
    found = {"2026": 3, "2025": 1, "2026-11": 3, "2026-11-29": 1, "2026-11-28": 1, "2025-02-28": 1, "2026-02": 0}
    for value, count in found.items():
        assert len(rows_of(listed(admin_client, AUDIT, when=value))) == count, value


def choices(client: Client, value: str) -> list[str]:
    """What the calendar offers, but for *All*, to somebody who chose this."""
    found = listed(client, AUDIT, **({"when": value} if value else {})).context["cl"]  # type: ignore[attr-defined]
    (spec,) = [spec for spec in found.filter_specs if isinstance(spec, admin_lists.When)]
    return [choice["display"] for choice in spec.choices(found)][1:]


@pytest.mark.parametrize(
    "value", ["x", "2026-13", "2026-02-30", "0000", "9999", "9999-12", "9999-12-31", "%00", "٢٠٢٦"]
)
def test_a_time_that_there_is_not_is_no_fault_of_the_server(admin_client: Client, value: str) -> None:  # SF-4
    noted(1)
    assert admin_client.get(f"{AUDIT}?when={value}").status_code in (200, 302)


def test_a_list_without_rows_has_no_calendar(admin_client: Client) -> None:  # SF-4
    assert "when" not in [spec.title for spec in listed(admin_client, AUDIT).context["cl"].filter_specs]  # type: ignore[attr-defined]


def test_a_search_is_for_a_whole_id_or_for_a_name(admin_client: Client, admin_user) -> None:  # VW-8
    Agent.objects.create(id="rocky", name="Rocky the Second", owner=admin_user)
    charge_all(charge("rocky", 0, table="T:1", hand=7), charge("nit", 1, table="T", hand=1))
    for word, whose in (
        ("rocky", ["rocky"]),
        ("the second", ["rocky"]),
        ("rocky-v3", ["rocky"]),
        ("T:1", ["nit"]),  # hand 1 of T is meant before the table T:1
        ("T:1:7", ["rocky"]),
        (" T ", ["nit"]),
        ("ni", []),
    ):
        assert [row.agent_id for row in rows_of(listed(admin_client, LEDGER, q=word))] == whose, word
    InferenceCharge.objects.filter(table_id="T").delete()
    assert len(rows_of(listed(admin_client, LEDGER, q="T:1"))) == 1
