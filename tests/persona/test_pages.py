"""The pages of studies: whose they are, what they say, and that looking changes nothing."""

import csv
import io
import json

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agentlab.common.text import visible
from agentlab.persona import reaction
from agentlab.persona.executors import Inline
from agentlab.persona.models import Checkpoint, StudyDefinition, StudyPersona, StudyRun, TraceEvent
from agentlab.persona.ports import PortFailed
from agentlab.persona.replaying import verify
from agentlab.persona.runner import Runner
from agentlab.persona.runs import create
from agentlab.persona.showing import derived, signed
from agentlab.persona.study import read_study
from agentlab.persona.turn_reading import TurnPage
from tests.pages import assert_no_inline_code, assert_valid_html

from .making import crowd, study, written
from .running import CONTENT, HOSTILE, client_of, html_of, made

pytestmark = pytest.mark.django_db


PAGES = ["study", "study-live", "study-beliefs", "study-trace"]
PERSONA_PAGES = [("study-persona", []), ("study-turn", [0]), ("study-turn", [5]), ("study-raw", [5, "shown"])]


def _urls(run: StudyRun) -> list[str]:
    return [reverse(name, args=[run.pk]) for name in PAGES] + [
        reverse(name, args=[run.pk, "ada", *rest]) for name, rest in PERSONA_PAGES
    ]


def test_the_owner_and_an_operator_see_a_study_a_stranger_does_not(run, olga) -> None:  # SF-1
    stranger, operator = User.objects.create_user("sam"), User.objects.create_user("op", is_staff=True)
    for url in _urls(run):
        assert client_of(olga).get(url).status_code in (200, 286), url
        assert client_of(operator).get(url).status_code in (200, 286), url
        assert client_of(stranger).get(url).status_code == 404, url
        assert client_of(None).get(url).status_code == 302, url
    verify_url = reverse("study-verify", args=[run.pk])
    assert client_of(stranger).post(verify_url).status_code == 404
    assert client_of(None).post(verify_url).status_code == 302


def test_a_study_without_an_owner_is_for_operators_alone(run, olga) -> None:  # SF-1
    StudyRun.objects.update(owner=None)
    assert client_of(olga).get(reverse("study", args=[run.pk])).status_code == 404
    assert b"Levy" not in client_of(olga).get("/personas").content
    assert b"no owner" in client_of(User.objects.create_user("op", is_staff=True)).get("/personas").content


@pytest.mark.parametrize(
    "path",
    [
        "/personas/0",
        "/personas/99999999999999999999999",
        "/personas/{run}/p/nobody",
        "/personas/{run}/p/ada/13",
        "/personas/{run}/p/ada/99999999999999999999",
        "/personas/{run}/p/ada/5/secret/raw",
        "/personas/{run}/p/a%00/1",
    ],
)
def test_what_is_not_there_is_404(run, olga, path: str) -> None:  # SF-4
    assert client_of(olga).get(path.format(run=run.pk)).status_code == 404


def test_pages_are_valid_private_and_show_hostile_text_as_text(run, olga) -> None:  # SF-2
    for url in ["/personas", *_urls(run)]:
        response = client_of(olga).get(url)
        assert response.headers["Cache-Control"] == "private, no-store"
        if response.headers["Content-Type"].startswith("text/html"):
            assert_valid_html(response)
            assert_no_inline_code(response)
            assert HOSTILE not in response.content.decode()
            assert "\u202e" not in response.content.decode()


def test_looking_changes_nothing(run, olga) -> None:  # PE-5
    def everything() -> list:
        return [
            list(model.objects.order_by("pk").values_list())
            for model in (StudyRun, StudyPersona, Checkpoint, TraceEvent)
        ]

    before = everything()
    for _ in range(10):
        for url in _urls(run):
            response = client_of(olga).get(url)
            b"".join(response) if response.streaming else response.content
    assert everything() == before
    assert client_of(olga).get(reverse("study-verify", args=[run.pk])).status_code == 405


def test_a_study_shows_its_beliefs_as_charts_and_as_the_same_numbers(run, olga) -> None:  # PE-6
    response = client_of(olga).get(reverse("study", args=[run.pk]), {"persona": "bo"})
    page = response.content.decode()
    [chart] = response.context["charts"]
    kinds = [series.kind for series in chart.series]
    assert kinds == ["faint", "faint", "strong", "chosen"]
    table = response.context["table"]
    assert table.columns == ["turn", "levy, lowest", "levy, median", "levy, highest", "levy, Bo"]
    last = Checkpoint.objects.get(run=run, persona=1)
    from agentlab.persona.state import read_state

    assert table.rows[-1][-1] == f"{read_state(bytes(last.state)).belief('levy').stance:+.3f}"
    assert 'class="chart"' in page
    assert "reflection in turn" in page
    assert len(table.rows) == 13


def test_reactions_are_counted_for_every_turn(run, olga) -> None:  # PE-3
    table = client_of(olga).get(reverse("study", args=[run.pk])).context["reaction_table"]
    assert [sum(map(int, row[1:])) for row in table.rows] == [2] * 12


def test_an_unreadable_event_is_said_and_breaks_no_page(run, olga) -> None:  # PE-6 SF-4
    TraceEvent.objects.filter(run=run, persona=0, turn__in=[4, 5]).update(payload=b"\x00")
    for url in _urls(run)[:-1]:
        response = client_of(olga).get(url)
        if response.streaming:
            assert b"".join(response)
        else:
            assert response.status_code in (200, 286), url
    for turn, said in ((4, "not the same ✗"), (5, "cannot be compared")):
        page = client_of(olga).get(reverse("study-turn", args=[run.pk, "ada", turn])).content.decode()
        assert "cannot be read" in page
        assert said in page
    assert "cannot be read" in client_of(olga).get(reverse("study", args=[run.pk])).content.decode()


def test_a_checkpoint_that_cannot_be_read_breaks_no_page(run, olga) -> None:  # SF-4
    Checkpoint.objects.filter(run=run).update(state=b"\x00")
    for url in _urls(run):
        assert client_of(olga).get(url).status_code in (200, 286), url


def test_a_turn_shows_what_came_to_mind_with_the_product(run, olga) -> None:  # PE-7
    response = client_of(olga).get(reverse("study-turn", args=[run.pk, "ada", 5]))
    page = response.context["page"]
    for row in page.recalled:
        one = row.recalled
        assert one.score == pytest.approx(one.recency * one.importance * one.similarity)
        assert row.memory is not None
        assert f"{one.score:.4f}" in response.content.decode()
    assert page.recorded_sha256 == page.replayed_sha256
    assert "the same ✓" in response.content.decode()


def test_what_a_reflection_cut_short_can_be_read_whole(run, olga) -> None:  # PE-7, PE-9
    turns = [_page_of(olga, run, turn) for turn in range(1, 13)]
    recalled = [(row, text) for page, text in turns for row in page.recalled if row.memory.sources]
    made = [(one, sources, text) for page, text in turns for one, sources in page.summaries]
    assert recalled
    assert any("…" in summary.text for summary, _, _ in made)
    for sources, text in [(row.sources, text) for row, text in recalled] + [(told, text) for _, told, text in made]:
        assert len(sources) > 1
        assert all(visible(memory.text) in text for _, memory in sources)
    summary, _, text = made[0]
    assert f'id="r{summary.sequence}"' in text  # where the persona's own page leads
    assert f"/ada/{summary.turn}#r{summary.sequence}" in html_of(olga, run, "study-persona", "ada")


def test_a_turn_shows_how_arousal_appraisal_and_importance_came_about(run, olga) -> None:  # PE-7
    for turn in range(1, 13):
        page, text = _page_of(olga, run, turn)
        found = derived(page, rules=None)
        assert (found.grounds.arousal, found.grounds.valence) == (page.reacted.arousal, page.reacted.appraisal)
        for number in (found.grounds.attention, found.grounds.familiar, page.reacted.arousal):
            assert f">{number:.3f}<" in text
        assert all(one.topic in text and f"{one.belief.confidence:.3f}" in text for one in found.grounds.argued)
        assert ("the weight of" in text) == (page.reacted.rated_by == "rule")


def test_numbers_that_the_formulas_do_not_give_are_not_explained_by_them(run, olga, monkeypatch) -> None:  # PE-7
    monkeypatch.setattr(reaction, "SOCIAL_HALF", 60)
    assert "the formulas of this version give other numbers" in html_of(olga, run, "study-turn", "ada", 4)
    TraceEvent.objects.filter(run=run, persona=0, turn=4, sequence=0).update(label="praise")
    assert "before this turn cannot be rebuilt" in html_of(olga, run, "study-turn", "ada", 7)


def test_a_turn_that_was_replayed_does_not_contradict_a_study_that_was_not(run, olga) -> None:  # PE-6
    assert "the same ✓" in html_of(olga, run, "study-turn", "ada", 5)
    assert "alone was replayed for this page" in html_of(olga, run, "study-turn", "ada", 5)
    assert "study as a whole</a> is not verified" in html_of(olga, run, "study-turn", "ada", 5)
    whole = html_of(olga, run)
    assert "Not verified as a whole" in whole
    assert f"manage.py study verify {run.pk}" in whole
    assert "That is not counted here." in whole
    verify(run)
    assert "study as a whole</a> was too, with the same state ✓" in html_of(olga, run, "study-turn", "ada", 5)
    assert "not counted" not in html_of(olga, run)


def test_a_first_turn_says_that_there_was_nothing_to_remember(run, olga) -> None:  # PE-7
    assert b"it had no memories yet" in client_of(olga).get(reverse("study-turn", args=[run.pk, "ada", 1])).content


def test_a_turn_of_the_model_shows_prompt_and_response_exactly(run, olga) -> None:  # PE-8
    row = TraceEvent.objects.filter(run=run, kind="reacted").first()
    page = client_of(olga).get(reverse("study-turn", args=[run.pk, "ada", row.turn])).content.decode()
    assert "tier B: the model was asked" in page
    raw = client_of(olga).get(reverse("study-raw", args=[run.pk, "ada", row.turn, "prompt"]))
    from agentlab.persona.events import read_payload

    assert raw.content.decode() == read_payload(bytes(row.payload)).prompt
    assert raw.headers["Content-Type"] == "text/plain; charset=utf-8"


def test_drift_is_shown_where_it_happened(run, olga) -> None:  # PE-11
    drifted = TraceEvent.objects.filter(run=run, label="drifted").first()
    key = StudyPersona.objects.get(run=run, number=drifted.persona).key
    for name, rest in (("study", []), ("study-persona", [key]), ("study-turn", [key, drifted.turn])):
        assert "drift ⚠" in client_of(olga).get(reverse(name, args=[run.pk, *rest])).content.decode()


def test_the_csv_has_every_stance_and_no_formulas(run, olga) -> None:  # PE-3
    content = b"".join(client_of(olga).get(reverse("study-beliefs", args=[run.pk]))).decode()
    rows = list(csv.DictReader(io.StringIO(content)))
    assert len(rows) == 2 * 13
    assert rows[0] == {"persona": "ada", "turn": "0", "topic": "levy", "stance": "0.4", "confidence": "0.5"}


def test_the_trace_downloads_as_lines_of_json(run, olga) -> None:  # PE-3
    content = b"".join(client_of(olga).get(reverse("study-trace", args=[run.pk]))).decode()
    assert len([json.loads(line) for line in content.splitlines()]) == run.events + 1


def test_empty_states_say_the_next_step(olga, tmp_path) -> None:
    assert b"No study yet" in client_of(olga).get("/personas").content
    run = create(read_study(written(tmp_path, CONTENT)), executor="inline", owner_id=olga.pk)
    page = client_of(olga).get(reverse("study", args=[run.pk])).content.decode()
    assert "No turn has been written yet." in page
    assert (
        "It has not arrived yet."
        in client_of(olga).get(reverse("study-persona", args=[run.pk, "ada"])).content.decode()
    )


def test_a_page_of_many_personas_takes_a_constant_number_of_queries(
    tmp_path, olga, django_assert_max_num_queries
) -> None:
    run = Runner(create(read_study(written(tmp_path, crowd(80, 3))), executor="i", owner_id=olga.pk), Inline()).go()
    client = client_of(olga)
    with django_assert_max_num_queries(30):
        response = client.get(reverse("study", args=[run.pk]), {"persona": "p79"})
    assert response.context["drawn"] <= 61
    assert "of 80 personas, evenly drawn" in response.content.decode()
    assert b"p25" in client.get(reverse("study", args=[run.pk]), {"page": "2"}).content
    assert b"p77" in client.get(reverse("study", args=[run.pk]), {"q": "p77"}).content


def _page_of(user: User, run: StudyRun, turn: int) -> tuple[TurnPage, str]:
    response = client_of(user).get(reverse("study-turn", args=[run.pk, "ada", turn]))
    return response.context["page"], response.content.decode()


def test_a_study_of_one_persona_draws_it_and_has_its_numbers(tmp_path, olga) -> None:  # PE-6
    run = made(tmp_path, olga, study(personas=[{"id": "ada"}]))
    response = client_of(olga).get(reverse("study", args=[run.pk]))
    [chart] = response.context["charts"]
    assert [series.kind for series in chart.series] == ["strong"]
    assert response.context["table"].columns == ["turn", "levy"]
    assert len(response.context["table"].rows) == 4
    page = response.content.decode()
    assert "nothing yet" not in page
    assert "Faint" not in page
    assert "1 persona<" in page


def test_pages_of_personas_keep_what_was_asked_for_and_stay_where_they_are(tmp_path, olga) -> None:  # VW-10
    run = made(tmp_path, olga, crowd(80, 1))
    page = html_of(olga, run, q="p", persona="p3")
    assert "?persona=p3&amp;q=p&amp;page=2#personas" in page
    assert '<input type="hidden" name="persona" value="p3">' in page
    assert "p79" in html_of(olga, run, q="p", page="4")


def test_a_persona_beyond_the_choices_is_among_them_when_it_is_chosen(tmp_path, olga, monkeypatch) -> None:  # VW-10
    monkeypatch.setattr("agentlab.persona.views.CHOICES", 3)
    run = made(tmp_path, olga, crowd(8, 1))
    assert '<option value="p7" selected>' in html_of(olga, run, persona="p7")
    assert '<option value="p7"' not in html_of(olga, run)


@pytest.mark.parametrize(
    ("probes", "turns", "said"),
    [
        (None, 3, "This study puts no probes."),
        ({"every": 9, "opinions": ["levy"]}, 3, "This study puts no probes."),
        ({"every": 2, "fields": ["age"]}, 3, "No probe applied"),
    ],
)
def test_a_study_without_probes_promises_none(tmp_path, olga, probes, turns: int, said: str) -> None:  # PE-11
    run = made(tmp_path, olga, study(probes=probes, schedule={"turns": turns}))
    page = html_of(olga, run)
    assert said in page
    assert "no drift" not in page
    own = html_of(olga, run, "study-persona", "ada")
    assert ("no probe applies to it" if "applied" in said else said) in own


def test_the_first_probe_is_announced(tmp_path, olga) -> None:  # PE-11
    content = study(probes={"every": 2, "opinions": ["levy"]})
    run = made(tmp_path, olga, content, stop=True)
    assert "The first probe comes in turn 2." in html_of(olga, run)
    assert "The first probe comes in turn 2." in html_of(olga, run, "study-persona", "ada")


def test_an_unanswered_probe_is_told_apart_from_drift(tmp_path, olga, monkeypatch) -> None:  # PE-11
    def away(self, prompt: str) -> str:
        raise PortFailed("asleep")

    monkeypatch.setattr("agentlab.persona.adapters.complete_rules.RuleModel.complete", away)
    content = study(tier_b={"budget": 0}, probes={"every": 3, "fields": ["age"]})
    run = made(tmp_path, olga, content)
    page = html_of(olga, run)
    assert "0 answers as expected, none drifted, 2 without an answer that can be measured." in page
    assert "drift ⚠" not in page + html_of(olga, run, "study-persona", "ada")
    assert "no answer that can be measured" in html_of(olga, run, "study-turn", "ada", 3)


def test_more_probes_than_a_page_holds_are_counted(tmp_path, olga) -> None:  # PE-11
    run = made(tmp_path, olga, study(probes={"every": 1, "opinions": ["levy"]}, schedule={"turns": 205}))
    assert "The first 200 of 205" in html_of(olga, run, "study-persona", "ada")


def test_a_checkpoint_that_cannot_be_read_is_not_called_an_empty_life(run, olga) -> None:  # PE-6
    Checkpoint.objects.filter(run=run).update(state=b"\x00")
    page = html_of(olga, run, "study-persona", "ada")
    assert "Its last checkpoint cannot be read." in page
    assert "No memories yet" not in page
    assert "It has been shown nothing yet." not in page
    assert reverse("study-turn", args=[run.pk, "ada", 12]) in page


def test_a_turn_after_a_break_of_the_trace_says_where_it_breaks(run, olga) -> None:  # PE-6
    TraceEvent.objects.filter(run=run, persona=0, turn=4, sequence=0).update(label="praise")
    page = html_of(olga, run, "study-turn", "ada", 7)
    assert "The trace breaks before this turn" in page
    assert reverse("study-turn", args=[run.pk, "ada", 4]) in page
    assert "cannot be compared" in page
    assert "not at all" not in page  # what it was before is not known
    assert "This turn&#x27;s trace does not hold" in html_of(olga, run, "study-turn", "ada", 4)


@pytest.mark.parametrize("data", [None, b"\x00"])
def test_a_study_whose_definition_is_gone_still_shows_its_trace(run, olga, data: bytes | None) -> None:  # SF-4
    if data is None:
        StudyDefinition.objects.all().delete()
    else:
        StudyDefinition.objects.update(data=data)
    for url in _urls(run):
        response = client_of(olga).get(url)
        assert b"".join(response) if response.streaming else response.status_code in (200, 286), url
    first, *events = b"".join(client_of(olga).get(reverse("study-trace", args=[run.pk]))).splitlines()
    assert (json.loads(first)["definition"], len(events)) == (None, run.events)
    assert "study" in json.loads(first)["problem"]
    assert "What this study was made of cannot be read" in html_of(olga, run)


def test_events_and_checkpoints_of_nobody_break_no_page(run, olga) -> None:  # SF-4
    StudyPersona.objects.filter(run=run, key="bo").delete()
    for url in _urls(run):
        response = client_of(olga).get(url)
        assert b"".join(response) if response.streaming else response.status_code in (200, 286), url


def test_odd_letters_in_a_name_are_visible_in_charts_too(tmp_path, olga) -> None:  # SF-2
    run = made(tmp_path, olga, study(personas=[{"id": "ada", "name": "A\u202edA"}, {"id": "bo"}]))
    for page in (html_of(olga, run, persona="ada"), html_of(olga, run, "study-persona", "ada")):
        assert "\u202e" not in page
        assert "RLO" in page


def test_nothing_has_no_sign() -> None:
    assert [signed(value) for value in (-0.0, 0.0, -0.004, 0.126)] == ["+0.00", "+0.00", "-0.004", "+0.13"]


@pytest.mark.skipif(connection.vendor != "sqlite", reason="it reads SQLite's own plan")
def test_a_studys_counts_and_drifts_are_read_without_reading_the_whole_trace(run, olga) -> None:  # PE-3
    with CaptureQueriesContext(
        connection,
    ) as asked:
        assert client_of(olga).get(reverse("study", args=[run.pk])).status_code == 200
    plans = []
    for query in asked.captured_queries:
        if 'FROM "study_trace"' in query["sql"]:
            with connection.cursor() as cursor:
                plans.append(" ".join(str(row[3]) for row in cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")))
    assert plans
    for plan in plans:
        assert "study_trace_probed" in plan or "(run_id=? AND persona=?" in plan, plan
    assert sum("COVERING INDEX study_trace_" in plan for plan in plans) == 1  # the counts touch no event
