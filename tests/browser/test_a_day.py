"""A day on a real site: an operator and two owners, their agents at a table, the factory and the personas, a store that
goes away and comes back. One story, told in the order in which it happens."""

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.installed import Command, InstalledSite
from tests.browser.person import PATIENCE, Person
from tests.conftest import SHARED_DATA
from tests.openai_server import Says, scripted_server

WHISPER = "Breathe, and fold to a big raise."
TASK = "Write a command `slugify TEXT`.\n\nIt keeps letters of every script.\n"
NOTES = "Use hyphens.\n"
SESSION = SHARED_DATA / "sessions/pi/v3-retries/session.jsonl"
STUDY = Path(__file__).parents[2] / "agentlab/persona/studies/first.yaml"
BEYOND = 90_000  # chips, more than anybody has


@dataclass
class TwoModels:
    """Two models behind one endpoint. `bold` goes all-in: in the first hand by a number that it does not have, in the
    second by the very one that it was told. `careful` folds to that; in the second hand it first thinks without end,
    which `thinks` says, and is there again for whoever asks once more."""

    thinks: threading.Event = field(default_factory=threading.Event)

    def __call__(self, request: dict[str, Any]) -> Says | None:
        prompt = request["messages"][-1]["content"]
        hand = int(re.findall(r"^Hand (\d+),", prompt, re.M)[-1])
        to_call = int(re.findall(r"^To call: (\d+)", prompt, re.M)[-1])
        if request["model"] == "bold":
            most = re.findall(r"^Raise to: .*most (\d+)", prompt, re.M)
            if not most:
                return chooses("There is nothing left to raise.", "call")
            return chooses("I hold nothing, and will not be believed.", "raise", BEYOND if hand == 1 else int(most[-1]))
        if to_call <= 100:
            return chooses("A cheap look.", "call")
        if hand == 2 and not self.thinks.is_set():
            self.thinks.set()
            return None
        return chooses("Too dear for me.", "fold")


def chooses(words: str, action: str, amount: int | None = None) -> Says:
    return Says(f"{words}\n{json.dumps({'action': action} | ({'amount': amount} if amount else {}))}")


@dataclass
class Day:
    """`run` and `study` are the factory's and the personas' work, which goes on beside. `kept`: what was read in the
    kept hands before the day was over."""

    site: InstalledSite
    models: TwoModels
    port: int
    run: Command
    study: Command
    operator: Person
    ada: Person
    ben: Person
    kept: dict[str, list[str]] = field(default_factory=dict)

    @property
    def everybody(self) -> tuple[Person, Person, Person]:
        return self.operator, self.ada, self.ben


@pytest.fixture
def day(browser: Browser, tmp_path: Path) -> Iterator[Day]:
    models = TwoModels()
    with scripted_server(decide=models) as server:
        port = int(server.url.split(":")[2].split("/")[0])
        with InstalledSite(tmp_path, "--hands", "2", OPENAI_BASE_URL=server.url, MIN_TURN_MS="0") as site:
            people = [Person(browser, site.url, name) for name in ("operator", "ada", "ben")]
            expect.set_options(timeout=PATIENCE)
            try:
                yield Day(site, models, port, *work_begins(site, tmp_path), *people)
            finally:
                expect.set_options(timeout=5_000)
                for person in people:
                    person.leaves()


def work_begins(site: InstalledSite, folder: Path) -> tuple[Command, Command]:
    """A run of ada's whose first replies cannot be read, and a study of ben's."""
    (folder / "task.md").write_text(TASK)
    (folder / "context").mkdir()
    (folder / "context" / "notes.md").write_text(NOTES)
    with_retries = ("--file", "task.md", "--context", "context", "--provider", "rehearsal:parse")
    run = site.begins("factory", "run", *with_retries, "--owner", "ada", "--json")
    return run, site.begins("study", "run", STUDY, "--owner", "ben", "--json")


def test_a_day_of_an_operator_and_two_owners(day: Day) -> None:
    everybody_signs_in(day)
    day.site.waits_until_all_is_played()  # by the house, at its own table
    the_owners_prepare_their_agents(day)
    two_hands_are_played_and_an_agent_is_killed_in_the_second(day)
    the_operator_keeps_a_hand_of_the_house(day)
    the_operator_tells_a_changed_action_from_a_bad_one(day)
    the_operator_sees_what_the_killed_agent_lacked(day)
    ada_follows_her_whisper_to_the_turn_that_knew_it(day)
    ada_keeps_her_part_of_a_hand(day)
    ben_is_told_what_became_of_his_agents_choice(day)
    ada_reads_what_each_attempt_was_given(day)
    ben_brings_a_session_of_his_own(day)
    ben_follows_a_persona_and_has_the_study_replayed(day)
    each_sees_theirs_alone(day)
    the_day_is_over_and_what_was_kept_is_not(day)
    redis_goes_away_and_comes_back(day)
    everybody_signs_out(day)


# At the table ------------------------------------------------------------------------------------------------------


def everybody_signs_in(day: Day) -> None:
    for person in day.everybody:
        person.signs_in(day.site.passwords[person.name])


def the_owners_prepare_their_agents(day: Day) -> None:  # HA-11 HA-12 VW-7
    whispers_to(day.ada, "Rocky", WHISPER)
    publishes(day.ada, "Rocky", model="openai:careful", strategy="Fold what is dear.")
    publishes(day.ben, "Bluffy", model="openai:bold", strategy="Put all of it in.")


def whispers_to(owner: Person, agent: str, words: str) -> None:
    owner.goes_to("Agents")
    owner.follows(agent)
    owner.follows("Whispers")
    owner.page.get_by_label("Whisper", exact=True).fill(words)
    owner.presses("Whisper")
    owner.reads(words, "WAITING", "sits at no table now")


def publishes(owner: Person, agent: str, *, model: str, strategy: str) -> None:
    owner.goes_to("Agents")
    owner.follows(agent)
    owner.follows("Versions")
    owner.follows("Publish a new version")
    owner.page.get_by_label("Strategy", exact=True).fill(strategy)
    owner.page.get_by_label("Model", exact=True).fill(model)
    owner.presses("Publish")
    expect(owner.page.get_by_role("heading", name="v2", exact=True)).to_be_visible()
    owner.reads(strategy, "CHANGED")


def two_hands_are_played_and_an_agent_is_killed_in_the_second(day: Day) -> None:  # HA-1 HA-2
    seats = ("--agent", "rocky", "--agent", "bluffy", "--table", "evening", "--hands", "2", "--pace", "watch")
    play = day.site.begins("play", *seats, "--json")
    assert day.models.thinks.wait(PATIENCE / 1000), "rocky's model is asked in the second hand, and thinks"
    play.child_that_talks_to(day.port).kill()
    counts = play.ends()
    assert (counts["hands"], counts["fallbacks"]) == (2, 0)


def the_operator_keeps_a_hand_of_the_house(day: Day) -> None:  # VW-1 VW-2 VW-5
    operator = day.operator
    operator.goes_to("Captured hands")
    assert operator.links() == ["evening:2", "evening:1", "main:2", "main:1"]
    operator.reads("0 lost")
    operator.follows("main:1")
    first = operator.page.get_by_role("article").first
    for part in ("Knew", "Prompt", "Response", "Sent"):
        expect(first.get_by_role("heading", name=part)).to_be_visible()
    first.get_by_text("Prompt", exact=True).click()
    operator.reads("You hold", where=first)
    operator.main.get_by_role("button", name=re.compile("Keep this hand for all")).click()
    operator.reads(re.compile(r"(Rocky|Nit|Callie): kept \d turns?"), where=operator.page.get_by_role("status").last)
    operator.looks_around()


def turn(person: Person, words: str) -> Any:
    """The turn whose head says this."""
    head = person.page.get_by_role("heading", level=2, name=re.compile(words))
    return person.page.get_by_role("article").filter(has=head)


def the_operator_tells_a_changed_action_from_a_bad_one(day: Day) -> None:  # VW-1 VW-3
    operator = day.operator
    operator.goes_to("Captured hands")
    operator.reads("CLAMPED", where=operator.row("evening:1"))
    operator.reads_nothing_of("CLAMPED", where=operator.row("evening:2"))
    operator.follows("clamped")
    assert "evening:1" in operator.links()
    assert "evening:2" not in operator.links()
    operator.follows("evening:1")
    changed = turn(operator, r"Bluffy.*raises to")
    operator.reads("CLAMPED", "Changed on the way out: the response asked for 90,000", "10,000 reached", where=changed)
    operator.reads("I hold nothing", where=changed)
    operator.goes_to("Captured hands")
    operator.follows("evening:2")
    bad = turn(operator, r"Bluffy.*raises to")
    operator.reads("I hold nothing", where=bad)
    operator.reads_nothing_of("CLAMPED", "Changed on the way out", where=bad)


def the_operator_sees_what_the_killed_agent_lacked(day: Day) -> None:  # VW-9
    folds = turn(day.operator, "Rocky.*folds")
    day.operator.reads("its log of this hand is empty", "reconnected in the middle of the hand", where=folds)
    day.operator.reads("Its recent hands and its notes are empty too", where=folds)


def ada_follows_her_whisper_to_the_turn_that_knew_it(day: Day) -> None:  # HA-12 VW-2
    ada = day.ada
    ada.goes_to("Agents")
    ada.follows("Rocky")
    ada.follows("Whispers")
    ada.reads("HEARD")
    ada.follows(re.compile("hand evening:1"))
    knew_it = ada.page.locator(":target")
    ada.reads(WHISPER, "It chose this.", where=knew_it)
    ada.follows("v2", within=knew_it)
    ada.reads("Fold what is dear.")


def ada_keeps_her_part_of_a_hand(day: Day) -> None:  # VW-7
    ada = day.ada
    ada.follows("Hands")
    ada.follows("evening:2")
    ada.reads("reconnected in the middle of the hand", where=turn(ada, "Rocky.*folds"))
    ada.main.get_by_role("button", name="Keep this hand").click()
    ada.reads(re.compile(r"Rocky: kept \d turns?"))
    ada.looks_around()
    ada.follows("Kept")
    assert ada.links()[0] == "evening:2"  # the operator's keeping may have made another one hers


def ben_is_told_what_became_of_his_agents_choice(day: Day) -> None:  # VW-3 VW-7
    ben = day.ben
    ben.goes_to("Agents")
    ben.follows("Bluffy")
    ben.reads("CLAMPED", where=ben.row("evening:1"))
    ben.follows("evening:1")
    ben.reads("It asked for raise 90,000, and raise", where=turn(ben, "Bluffy.*raises to"))
    assert ben.page.get_by_role("article").count() == 1, "his own agent's turn and nobody else's"


# The other rooms -----------------------------------------------------------------------------------------------------


def ada_reads_what_each_attempt_was_given(day: Day) -> None:  # AI-1 AI-6 FA-4
    ada, run = day.ada, day.run.ends()
    ada.goes_to("Factory")
    ada.follows(str(run["run"]))
    ada.reads("could not be read", "retries #1")
    ada.page.get_by_role("link", name="2 plan").click()
    drawer = ada.page.get_by_role("complementary", name="Attempt")
    ada.reads(re.compile("parse correction", re.I), "slugify TEXT", where=drawer)
    ada.looks_around()
    ada.follows("whole page", within=drawer)
    ada.reads("It keeps letters of every script.")
    ada.follows("‹ 1")
    ada.reads("Attempt 1, plan", "Available by path")
    given = ada.page.get_by_role("listitem").filter(has_text="notes.md").filter(has_text="Preview")
    given.get_by_text("Preview", exact=True).click()
    ada.reads(NOTES.strip(), "checked just now", where=given)
    ada.looks_around()


def ben_brings_a_session_of_his_own(day: Day) -> None:  # IM-1
    ben = day.ben
    ben.goes_to("Factory")
    ben.reads("No run yet.")
    ben.follows("Read a session file")
    ben.page.get_by_label("File", exact=True).set_input_files(SESSION)
    ben.presses("Import")
    ben.reads("session.jsonl: ", " shown")
    ben.main.get_by_role("table").get_by_role("link").first.click()
    drawer = ben.page.get_by_role("complementary", name="Attempt")
    ben.reads("Imported from", where=drawer)
    ben.looks_around()


def ben_follows_a_persona_and_has_the_study_replayed(day: Day) -> None:  # PE-6 PE-7
    ben, study = day.ben, day.study.ends()
    assert study["status"] == "complete"
    ben.goes_to("Personas")
    ben.follows("Levy for the pool")
    ben.reads("COMPLETE", "Not verified")
    ben.follows("Edith Novak", within=ben.main.get_by_role("table").filter(has_text="Memories"))
    ben.reads("Profile", "retired", "on the market square")
    ben.follows("28", within=ben.main.get_by_role("table").filter(has_text="It saw"))
    ben.reads("What came to mind", "the same ✓")
    ben.follows("Levy for the pool")
    ben.main.get_by_role("button", name="Verify now").click()
    ben.reads("Replay gives the same state ✓")
    ben.looks_around()


# Who sees what -------------------------------------------------------------------------------------------------------

THEIRS = re.compile(r"/(agents/(rocky|nit|bluffy|callie)|factory/(runs|inputs)/|personas/\d|api/collector/)")


def each_sees_theirs_alone(day: Day) -> None:  # RD-3 RD-5
    names = {"ada": ("Nit", "Rocky"), "ben": ("Bluffy", "Callie")}
    for owner, other in ((day.ada, day.ben), (day.ben, day.ada)):
        for room in ("agentlab", "Agents", "Factory", "Personas"):
            owner.goes_to(room)
            if room in ("agentlab", "Agents"):
                owner.reads(*names[owner.name])
                owner.reads_nothing_of(*names[other.name])
    for owner, other in ((day.ada, day.ben), (day.ben, day.ada)):
        hers = {address for address in owner.seen if THEIRS.match(address)}
        assert len(hers) > 20
        assert hers.isdisjoint(other.seen)
        open_to_others = [address for address in hers if other.status_of(address) != 404]
        assert not open_to_others
        sent = {address for address in owner.forms if THEIRS.match(address)}
        assert sent
        assert [address for address in sent if other.status_of_sending(address) != 404] == []
    the_operators_doors_are_closed_to_owners(day)


def the_operators_doors_are_closed_to_owners(day: Day) -> None:  # RD-4 RD-5
    of_all = {address for address in day.operator.seen if address.startswith("/agent-capture")}
    api = "?tableId=evening&handNumber=2&agentId="
    for owner, agent in ((day.ada, "rocky"), (day.ben, "bluffy")):
        assert [address for address in of_all if owner.status_of(address) != 404] == []
        assert owner.status_of(f"/api/hosted-agent/hand{api}{agent}") == 404
        assert owner.status_of(f"/internal/agent-capture/hand{api}{agent}") in (401, 403)
    assert day.operator.status_of(f"/api/hosted-agent/hand{api}rocky") == 200


# What lasts ----------------------------------------------------------------------------------------------------------


def the_day_is_over_and_what_was_kept_is_not(day: Day) -> None:  # VW-6 RD-2 PIN-4
    day.kept = what_is_kept(day)
    day.site.lets_a_day_pass()
    assert what_is_kept(day) == day.kept
    gone = "and not kept: captures live 24 hours. The ledger still has its"
    for hand in ("main:2", "evening:1"):
        opens_hand(day.operator, hand)
        day.operator.reads(gone)
        expect(day.operator.page.get_by_role("article")).not_to_have_count(0)
    day.operator.reads("CLAMPED", where=turn(day.operator, r"Bluffy.*raises to"))
    for owner, hand in ((day.ada, "evening:1"), (day.ben, "evening:2")):
        opens_hand(owner, hand)
        owner.reads(gone)
    opens_hand(day.operator, "evening:2")  # which ada keeps her part of
    day.operator.reads("KEPT", "Too dear for me.", where=turn(day.operator, "Rocky.*folds"))
    day.operator.reads("Expired", "was not kept", where=turn(day.operator, r"Bluffy.*raises to"))


def what_is_kept(day: Day) -> dict[str, list[str]]:
    return {hand: what_is_read(who, hand) for who, hand in ((day.operator, "main:1"), (day.ada, "evening:2"))}


def opens_hand(person: Person, hand: str) -> None:
    """From the list that they have."""
    if person.name == "operator":
        person.goes_to("Captured hands")
    else:
        person.goes_to("Agents")
        person.follows({"ada": "Rocky", "ben": "Bluffy"}[person.name])
    person.follows(hand)


def what_is_read(person: Person, hand: str) -> list[str]:
    """All that the page of a hand shows of its turns, and the very bytes behind it."""
    opens_hand(person, hand)
    shown = person.page.locator("article section").all_inner_texts()
    raw = [link.get_attribute("href") or "" for link in person.main.get_by_role("link", name=re.compile("^Raw ")).all()]
    assert len(raw) >= 4, "at least one whole turn"
    return [*shown, *map(person.text_of, raw)]


def redis_goes_away_and_comes_back(day: Day) -> None:  # CAP-10 E-AFT-7
    day.site.stops_redis()
    assert json.loads(day.operator.text_of("/healthz"))["captureRedis"] == "down"
    assert what_is_kept(day) == day.kept
    for person in (day.operator, day.ada):
        person.reads("The capture Redis does not answer: only kept turns are shown.")
    opens_hand(day.operator, "main:2")
    day.operator.reads("The capture Redis does not answer. Kept hands still load; of this one nothing is kept.")

    counts = a_hand_is_played(day)
    assert counts["dropped"] + counts["failed"] == counts["turns"] > 0
    day.operator.goes_to("Captured hands")
    day.operator.reads("LOST", where=day.operator.row("night:1"))

    day.site.starts_redis()
    counts = a_hand_is_played(day)
    assert counts["captured"] == counts["turns"] > 0
    assert json.loads(day.operator.text_of("/healthz"))["captureRedis"] == "up"
    opens_hand(day.operator, "night:2")
    day.operator.reads(f"{counts['turns']} recorded")
    day.operator.reads_nothing_of("does not answer", "LOST")


def a_hand_is_played(day: Day) -> dict[str, Any]:
    seats = ("--agent", "nit", "--agent", "callie", "--table", "night")
    return day.site.begins("play", *seats, "--hands", "1", "--json").ends()


def everybody_signs_out(day: Day) -> None:  # SF-1
    for person in day.everybody:
        last = person.page.url.removeprefix(person.url)
        person.signs_out()
        person.opens(last)
        expect(person.page.get_by_role("heading", name="Sign in")).to_be_visible()
