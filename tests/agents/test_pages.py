"""The owner's pages: making, publishing, whispering."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agentlab.agents.base_prompt import BASE_PROMPT
from agentlab.agents.models import Agent, AgentDeployment, AgentVersion, Whisper
from agentlab.agents.services import Draft, Refused, parts, publish
from agentlab.common.models import AuditEntry, Deed
from tests.pages import assert_valid_html

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("capture_redis")]


@pytest.fixture
def ann(client: Client) -> User:
    user = User.objects.create_user("ann")
    client.force_login(user)
    return user


@pytest.fixture
def stranger() -> Client:
    client = Client()
    client.force_login(User.objects.create_user("bob"))
    return client


@pytest.fixture
def rocky(ann: User) -> Agent:
    return Agent.objects.create(id="rocky", name="Rocky", owner=ann)


def draft(**changes: object) -> Draft:
    said = {"base_prompt": "Play.", "strategy": "Be tight.", "skills": [{"name": "Odds", "text": "Count outs."}]}
    return Draft(**(said | {"model": "house"} | changes))


def form(skills: list[tuple[str, str]], **fields: str) -> dict[str, object]:
    said = {"base_prompt": "Play.", "strategy": "Be tight.", "model": "house"} | fields
    rows = {
        f"skill-{index}-{name}": value
        for index, row in enumerate(skills)
        for name, value in zip(("name", "text"), row, strict=True)
    }
    return said | rows | {"skill-TOTAL_FORMS": len(skills), "skill-INITIAL_FORMS": 0}


def test_an_owner_makes_an_agent_and_is_led_to_its_first_version(client: Client, ann: User) -> None:  # VW-7, HA-11
    response = client.post("/agents/new", {"name": "Rocky"})
    assert (response.status_code, response.headers["Location"]) == (302, "/agents/rocky/versions/new")
    assert Agent.objects.get(pk="rocky").owner == ann
    page = client.get("/agents/rocky/versions/new").content.decode()
    assert BASE_PROMPT[:60] in page.replace("&#x27;", "'")


@pytest.mark.parametrize("name", ["Rocky", "rocky", "New", "Ж", "a:b{c}", "//host"])
def test_an_agents_id_is_plain_and_never_taken_twice(client: Client, ann: User, name: str) -> None:  # HA-11
    ids = [client.post("/agents/new", {"name": name}).headers["Location"].split("/")[2] for _ in range(3)]
    assert len(set(ids)) == 3
    assert all(client.get(f"/agents/{agent_id}").status_code == 200 for agent_id in ids)


@pytest.mark.parametrize("name", ["", " ", "a\0b", "x" * 81])
def test_a_name_that_is_none_is_refused_on_the_page(client: Client, ann: User, name: str) -> None:  # SF-4
    response = client.post("/agents/new", {"name": name})
    assert (response.status_code, Agent.objects.count()) == (200, 0)
    assert "form-error" in response.content.decode()


def test_a_version_is_published_as_written_with_the_next_number(client: Client, rocky: Agent) -> None:  # HA-11
    said = form(
        [("Odds", "Count\r\nouts. "), ("", ""), ("Position", "Late is good.")], strategy=" Be <b>tight</b>.\r\n"
    )
    assert client.post("/agents/rocky/versions/new", said).headers["Location"] == "/agents/rocky/versions/rocky-v1"
    version = AgentVersion.objects.get()
    assert (version.id, version.number, version.strategy) == ("rocky-v1", 1, " Be <b>tight</b>.\n")
    kept = [{"name": "Odds", "text": "Count\nouts. "}, {"name": "Position", "text": "Late is good."}]
    assert version.skills == kept
    page = client.get("/agents/rocky/versions/rocky-v1").content.decode()
    assert "Be &lt;b&gt;tight&lt;/b&gt;." in page


def test_the_form_begins_with_what_the_newest_version_says(client: Client, rocky: Agent) -> None:  # VW-7
    publish(rocky, draft())
    publish(rocky, draft(strategy="Be loose."))
    page = client.get("/agents/rocky/versions/new").content.decode()
    assert ("Be loose." in page, "Count outs." in page) == (True, True)


def test_a_version_that_says_the_same_is_not_published(client: Client, rocky: Agent) -> None:  # HA-11
    publish(rocky, draft())
    response = client.post("/agents/rocky/versions/new", form([("Odds", "Count outs.")]))
    assert response.status_code == 200
    assert "Nothing differs from v1" in response.content.decode()
    with pytest.raises(Refused):
        publish(rocky, draft())


@pytest.mark.parametrize(
    "bad",
    [
        form([], strategy=""), form([], strategy="a\0b"), form([], strategy="x" * 20_001), form([], model=""),
        form([("Odds", "")]), form([("", "text")]), form([("n", "t")] * 13), form([("n", "t" * 8_001)]),
        {"strategy": "x"}, form([]) | {"skill-TOTAL_FORMS": "x"}, form([]) | {"skill-TOTAL_FORMS": "9" * 30},
    ],
    ids=range(11),
)  # fmt: skip
def test_what_cannot_be_published_is_said_on_the_page_and_not_published(
    client: Client, rocky: Agent, bad: dict[str, object]
) -> None:  # SF-4
    response = client.post("/agents/rocky/versions/new", bad)
    assert (response.status_code, AgentVersion.objects.count()) == (200, 0)
    assert 'class="flash error problems" role="alert"' in response.content.decode()


@pytest.mark.parametrize(
    ("bad", "place", "words"),
    [
        ({"strategy": "x" * 20_001}, "id_strategy", "Strategy"),
        ({"model": "gpt-5"}, "id_model", "Model"),
        ({"skills": [("Odds", "t" * 8_001)]}, "id_skill-0-text", "Skill 1, Text"),
        ({"skills": [("Odds", "Count."), ("Bare", "")]}, "id_skill-1-name", "Skill 2"),
    ],
)
def test_what_is_wrong_with_a_version_is_said_at_the_top_and_leads_to_its_field(
    client: Client, rocky: Agent, bad: dict[str, Any], place: str, words: str
) -> None:  # VW-7
    said = form(bad.pop("skills", []), **bad)
    html = client.post("/agents/rocky/versions/new", said).content.decode()
    summary = html[html.index('role="alert" tabindex="-1" autofocus') : html.index('<form method="post" class="wide"')]
    assert f'<a href="#{place}">{words}</a>: ' in summary
    field = re.search(rf'<(?:input|textarea)[^>]*id="{place}"[^>]*>', html)
    assert field
    if words != "Skill 2":  # that one is about two fields
        assert 'aria-invalid="true"' in field[0]
        described = re.search(r'aria-describedby="[^"]*?(\S+_error)"', field[0])
        assert described and f'id="{described[1]}"' in html
    assert "autofocus" not in client.get("/agents/rocky/versions/new").content.decode()


@pytest.mark.parametrize("model", ["gpt-5", "answers:/etc/passwd", "openai:", "openai:a b", "House"])
def test_a_model_that_no_table_can_ask_is_refused_while_it_can_be_put_right(
    client: Client, rocky: Agent, model: str
) -> None:  # HA-11
    answer = client.post("/agents/rocky/versions/new", form([], model=model))
    assert "Write house, or openai: and the name of a model" in answer.content.decode()
    assert not AgentVersion.objects.exists()


def test_a_model_of_the_endpoint_is_named_as_commands_name_it(client: Client, rocky: Agent) -> None:  # HA-11
    assert client.post("/agents/rocky/versions/new", form([], model="openai:org/some-model.1")).status_code == 302
    assert AgentVersion.objects.get().model == "openai:org/some-model.1"


def test_a_versions_page_shows_what_changed_since_the_one_before(client: Client, rocky: Agent) -> None:  # VW-7
    publish(rocky, draft(strategy="one\ntwo\nthree"))
    publish(rocky, draft(strategy="one\n2 <script>\nthree", skills=[], model="gpt"))
    response = client.get("/agents/rocky/versions/rocky-v2")
    assert_valid_html(response)
    page = response.content.decode()
    assert "<ins><b>+</b>2 &lt;script&gt;</ins>" in page
    assert "<del><b>−</b>two</del>" in page
    assert "<del><b>−</b>Count outs.</del>" in page
    assert (page.count("CHANGED"), page.count("REMOVED")) == (2, 1)  # model and strategy; the skill
    assert "the first version" in client.get("/agents/rocky/versions/rocky-v1").content.decode()


def test_a_skill_that_was_added_or_taken_away_is_new_or_removed_and_replaced_nothing(
    client: Client, rocky: Agent
) -> None:  # VW-7
    with_skill, without = draft(), draft(skills=[])
    for said in (without, with_skill, without):
        publish(rocky, said)
    added, removed = (client.get(f"/agents/rocky/versions/rocky-v{n}").content.decode() for n in (2, 3))
    assert "Skill: Odds" in added and ">NEW</span>" in added and "It was not in v1." in added
    assert "<ins><b>+</b>Count outs.</ins>" in added and "<del>" not in added
    assert ">REMOVED</span>" in removed and "It was in v2 and is no longer there." in removed
    assert "<del><b>−</b>Count outs.</del>" in removed and "<ins>" not in removed
    assert not any("CHANGED" in page for page in (added, removed))


def test_a_part_that_was_empty_or_becomes_so_has_no_empty_line_in_its_diff(rocky: Agent) -> None:  # VW-7
    full, empty, again = (publish(rocky, draft(base_prompt=words)) for words in ("Play well.", "", "Play better."))
    for version, before, kinds in ((empty, full, ["removed"]), (again, empty, ["added"])):
        [base] = [part for part in parts(version, before) if part.change]
        assert (base.name, base.change) == ("Base prompt", "changed")
        assert [line.kind for line in base.diff] == kinds


def test_a_part_that_did_not_change_has_no_diff(rocky: Agent) -> None:  # VW-7
    first, second = publish(rocky, draft()), publish(rocky, draft(strategy="Be loose."))
    assert [part.name for part in parts(second, first) if part.diff] == ["Strategy"]
    assert not any(part.diff for part in parts(first, None))


def test_a_published_version_cannot_be_changed_by_a_page(client: Client, rocky: Agent) -> None:  # HA-11
    publish(rocky, draft())
    assert client.post("/agents/rocky/versions/rocky-v1", form([])).status_code == 405


def test_a_whisper_is_kept_with_author_and_time_and_noted_in_the_audit(client: Client, rocky: Agent) -> None:  # HA-12
    assert client.post("/agents/rocky/whispers", {"text": "Fold <b>more</b>."}).status_code == 302
    whisper = Whisper.objects.get()
    assert (whisper.author.username, whisper.text) == ("ann", "Fold <b>more</b>.")
    page = client.get("/agents/rocky/whispers").content.decode()
    assert "Fold &lt;b&gt;more&lt;/b&gt;." in page
    entry = AuditEntry.objects.get()
    assert (entry.deed, entry.actor_name, entry.agent_id) == (Deed.WHISPERED, "ann", "rocky")
    assert "Fold" not in entry.detail


def test_no_browser_cuts_what_is_pasted_into_a_whisper_or_a_version(client: Client, rocky: Agent) -> None:  # SF-4
    for page in ("whispers", "versions/new"):
        fields = re.findall(r"<textarea[^>]*>", client.get(f"/agents/rocky/{page}").content.decode())
        assert fields
        assert "maxlength" not in "".join(fields)


@pytest.mark.parametrize("text", ["", "  ", "a\0b", "x" * 501])
def test_a_whisper_that_is_none_is_refused_on_the_page(client: Client, rocky: Agent, text: str) -> None:  # SF-4
    response = client.post("/agents/rocky/whispers", {"text": text})
    assert (response.status_code, Whisper.objects.count()) == (200, 0)


READS = ["/agents/rocky", "/agents/rocky/kept", "/agents/rocky/versions", "/agents/rocky/versions/rocky-v1"]
READS += ["/agents/rocky/whispers"]
WRITES = ["/agents/rocky/versions/new", "/agents/rocky/whispers", "/agents/rocky/keep", "/agents/rocky/unkeep"]


@pytest.mark.parametrize("path", [*READS, "/agents/rocky/versions/new", "/agents/rocky/unkeep?table=T&hand=1"])
def test_a_strangers_agent_is_not_there(stranger: Client, rocky: Agent, path: str) -> None:  # SF-1
    publish(rocky, draft())
    assert stranger.get(path).status_code == 404


@pytest.mark.parametrize("path", WRITES)
def test_only_the_owner_changes_anything_and_an_operator_does_not(rocky: Agent, stranger: Client, path: str) -> None:
    # SF-1
    operator = Client()
    operator.force_login(User.objects.create_user("operator", is_staff=True))
    before = (AgentVersion.objects.count(), Whisper.objects.count())
    for other in (stranger, operator):
        body = form([], strategy="mine now") | {"text": "psst", "table": "T", "hand": "1"}
        assert other.post(path, body).status_code == 404
    assert (AgentVersion.objects.count(), Whisper.objects.count()) == before
    assert Client().post(path, {}).headers["Location"].startswith("/login?")


def test_an_operator_reads_along(rocky: Agent) -> None:  # SF-1
    publish(rocky, draft())
    operator = Client()
    operator.force_login(User.objects.create_user("operator", is_staff=True))
    for path in READS:
        page = operator.get(path)
        assert_valid_html(page)
        assert (page.status_code, '<form method="post" class="wide"' in page.content.decode()) == (200, False)


def test_another_agents_version_is_not_found_under_this_one(client: Client, rocky: Agent, ann: User) -> None:  # SF-1
    nit = Agent.objects.create(id="nit", name="Nit", owner=ann)
    publish(nit, draft())
    assert client.get("/agents/rocky/versions/nit-v1").status_code == 404


def test_a_form_from_another_site_is_refused(rocky: Agent, ann: User) -> None:  # SF-1
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(ann)
    for path in ("/agents/new", *WRITES):
        assert strict.post(path, {"name": "x", "text": "x"}).status_code == 403


def test_the_cards_cost_the_same_for_two_agents_and_for_twenty(client: Client, ann: User) -> None:  # VW-7
    costs = []
    for wanted in (2, 20):
        for number in range(Agent.objects.count(), wanted):
            agent = Agent.objects.create(id=f"a{number}", name=f"Agent {number}", owner=ann)
            version = publish(agent, draft())
            AgentDeployment.objects.create(agent=agent, version=version, table_id=f"T-{number}", model="house")
        with CaptureQueriesContext(connection) as queries:
            page = client.get("/agents").content.decode()
        costs.append(len(queries))
        assert page.count("seated at") == wanted
    assert costs[0] == costs[1]


@pytest.mark.parametrize("path", ["versions", "whispers"])
def test_long_lists_are_paged_at_a_constant_cost(client: Client, rocky: Agent, ann: User, path: str) -> None:  # VW-7
    costs = []
    for round_number in range(2):
        for number in range(60):
            Whisper.objects.create(agent=rocky, author=ann, text="psst")
            publish(rocky, draft(strategy=f"{round_number} {number}"))
        with CaptureQueriesContext(connection) as queries:
            assert client.get(f"/agents/rocky/{path}").status_code == 200
        costs.append(len(queries))
        assert client.get(f"/agents/rocky/{path}?page=2").status_code == 200
    assert costs[0] == costs[1]


def test_a_name_of_odd_characters_stands_in_title_and_labels_as_plain_signs(client: Client, rocky: Agent) -> None:
    # VW-7, SF-2
    Agent.objects.filter(pk="rocky").update(name='R\u202eo "<b>')
    for path in ("", "/versions", "/kept", "/whispers", "/versions/new"):
        page = client.get(f"/agents/rocky{path}")
        assert_valid_html(page)
        assert 'aria-label="RRLOo &quot;&lt;b&gt;"' in page.content.decode(), path


def test_nobody_takes_an_id_of_another_host_by_making_an_agent_of_its_name(settings: Any, client: Client) -> None:
    # RD-3, RD-5
    settings.HOSTED_AGENT_URL = "https://hands.example"
    client.force_login(User.objects.create_user("mallory"))
    said = client.post("/agents/new", {"name": "Ottobot"}).content.decode()
    assert "on the host where they play" in said
    assert not Agent.objects.filter(pk="ottobot").exists()
