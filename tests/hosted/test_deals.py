"""Real hands from PHH files, dealt as they were."""

import json
import os
import random
import subprocess
import sys
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentlab.hosted.deals import Deals, DealsError, Unplayable, to_deal
from agentlab.hosted.game import Deal, Hand
from tests.conftest import SHARED_DATA
from tests.hosted.hands import stacks

HANDS = SHARED_DATA / "hands"
BASE: dict[str, Any] = {
    "variant": "NT",
    "antes": [0, 0],
    "blinds_or_straddles": [5, 10],
    "min_bet": 10,
    "starting_stacks": [1000, 2000],
    "actions": ["d dh p1 AhAs", "d dh p2 ????"],
}


def read(name: str) -> dict[str, Any]:
    return tomllib.loads((HANDS / name).read_text(), parse_float=Decimal)


def replay(dealt: Deal, actions: list[str], scale: int) -> Hand:
    """Plays what was played. An IllegalMove would be a rule of ours that real players did not have."""
    hand = Hand(dealt, tuple(range(len(dealt.stacks))))
    for who, verb, *amount in (action.split() for action in actions):
        if who == "d" or verb == "sm":
            continue
        assert hand.to_act == int(who[1:]) - 1
        if verb == "f":
            hand.act("fold")
        elif verb == "cc":
            hand.act("call" if hand.legal().call else "check")
        else:
            hand.act("raise", int(Decimal(amount[0]) * scale))
    return hand


def test_every_real_hand_can_be_dealt() -> None:  # HA-9
    dealt = list(Deals(HANDS, seed=1))
    assert len(dealt) == 253
    assert {hand.source: hand.refused for hand in dealt if hand.deal is None} == {}


def test_every_real_hand_replays_to_the_stacks_that_it_recorded() -> None:  # HA-9
    index = {row["file"]: row for row in map(json.loads, (HANDS / "index.jsonl").read_text().splitlines())}
    replayed = 0
    for dealt in Deals(HANDS, seed=1):
        assert dealt.deal is not None
        told = read(dealt.source)
        scale = 100 if dealt.source.startswith("handhq") else 1
        hand = replay(dealt.deal, told["actions"], scale)
        assert hand.over, dealt.source
        if index[dealt.source]["replay_finishing_equal"]:
            assert stacks(hand) == told["finishing_stacks"], dealt.source
            replayed += 1
    assert replayed == 240


def test_cents_become_whole_chips() -> None:  # HA-9
    dealt = to_deal(read("handhq_cash_06.phh"), random.Random(1))
    assert dealt.stacks == (149250, 210740, 196000, 114600, 176250, 198000)
    assert (dealt.blinds[:2], dealt.antes[0], dealt.min_bet) == ((500, 1000), 250, 1000)


def test_cards_that_the_file_tells_are_dealt_those_shown_later_included() -> None:  # HA-9
    dealt = to_deal(read("handhq_cash_06.phh"), random.Random(1))
    assert dealt.hole_cards[3] == ("Ah", "Ac")
    assert dealt.hole_cards[4] == ("As", "Ad")
    assert dealt.board[:5] == ("Kc", "7s", "4h", "6s", "9d")


def test_missing_cards_are_completed_from_the_seed() -> None:  # HA-9
    first, again, other = (to_deal(BASE, random.Random(seed)) for seed in (1, 1, 2))
    assert first == again != other
    assert first.hole_cards[0] == ("Ah", "As")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"variant": "PO"}, "not no-limit hold'em"),
        ({"variant": None}, "not no-limit hold'em"),
        ({"starting_stacks": None}, "starting_stacks is missing"),
        ({"starting_stacks": [1000, Decimal("inf")]}, "no amount"),
        ({"starting_stacks": [1000, Decimal("nan")]}, "no amount"),
        ({"starting_stacks": [1000, 2**60]}, "no amount"),
        ({"starting_stacks": [1000, True]}, "no amount"),
        ({"starting_stacks": [1000, 0]}, "above 0"),
        ({"starting_stacks": [1000, Decimal("0.001")]}, "fractions of a cent"),
        ({"starting_stacks": [1000], "actions": []}, "2 to 9 players"),
        ({"antes": [0]}, "not of one length"),
        ({"min_bet": None}, "min_bet"),
        ({"actions": None}, "actions are missing"),
        ({"actions": ["d dh p1 AhAh"]}, "dealt twice"),
        ({"actions": ["d dh p7 AhAs"]}, "hole cards"),
        ({"actions": ["d dh p1 AhAsKs"]}, "hole cards"),
        ({"actions": ["d dh p1 XxYy"]}, "cards cannot be read"),
        ({"actions": ["d db AhKhQh", "d db Jh", "d db Th", "d db 2c", "d db 3c"]}, "run more than once"),
        ({"actions": ["p1 rc 2"]}, "run more than once"),
    ],
)
def test_a_hand_that_cannot_be_dealt_says_why(change: dict[str, Any], reason: str) -> None:  # HA-9
    with pytest.raises(ValueError, match=reason):
        to_deal({**BASE, **change}, random.Random(1))


def test_fields_that_newer_files_have_do_no_harm() -> None:  # HA-9
    assert to_deal({**BASE, "rake_cap": 3, "_site": {"x": 1}}, random.Random(1)).stacks == (1000, 2000)


def test_a_folder_goes_on_past_files_that_cannot_be_read(tmp_path: Path) -> None:  # HA-9 SF-4
    (tmp_path / "a.phh").write_bytes(b"\xff\xfe not text")
    (tmp_path / "b.phh").write_text("variant = ")
    (tmp_path / "c.phh").write_text("x = " + "[" * 5000)
    (tmp_path / "d.phh").write_text((HANDS / "pluribus_102_0.phh").read_text())
    (tmp_path / "e.phhs").write_text(
        "".join(f"[{number}]\n{(HANDS / 'handhq_cash_08.phh').read_text()}\n" for number in (1, 2))
    )
    (tmp_path / "notes.txt").write_text("no hand")
    (tmp_path / "z.phh").mkdir()
    found = {dealt.source: dealt.refused or "played" for dealt in Deals(tmp_path, seed=1)}
    assert found == {
        "a.phh": "not a TOML file in UTF-8",
        "b.phh": "not a TOML file in UTF-8",
        "c.phh": "not a TOML file in UTF-8",
        "d.phh": "played",
        "e.phhs#1": "played",
        "e.phhs#2": "played",
        "z.phh": "Is a directory",
    }


def test_files_are_utf8_whatever_the_locale_says(tmp_path: Path) -> None:  # HA-9
    (tmp_path / "a.phh").write_text((HANDS / "pluribus_102_0.phh").read_text() + '\nevent = "α 🂡"\n', encoding="utf-8")
    code = "from pathlib import Path; from agentlab.hosted.deals import Deals\n"
    code += "import sys; print([one.refused for one in Deals(Path(sys.argv[1]), 1)])"
    ascii_alone = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, env=ascii_alone, timeout=60
    )
    assert (done.stdout, done.stderr) == ("['']\n", "")


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_a_path_with_nothing_to_deal_is_said_in_one_line(tmp_path: Path, name: str) -> None:  # HA-9 SF-4
    (tmp_path / "empty").mkdir()
    with pytest.raises(DealsError, match="no PHH file"):
        Deals(tmp_path / name, seed=1)


@given(
    st.dictionaries(
        st.sampled_from(sorted(BASE)),
        st.one_of(
            st.none(), st.text(max_size=5), st.integers(), st.lists(st.one_of(st.integers(), st.decimals(), st.text()))
        ),
    )
)
def test_whatever_a_file_holds_it_is_dealt_or_refused(change: dict[str, Any]) -> None:  # SF-4
    try:
        assert isinstance(to_deal({**BASE, **change}, random.Random(1)), Deal)
    except ValueError as error:
        assert str(error)
        assert isinstance(error, Unplayable) or "\n" not in str(error)
