"""Playing cards from PokerKit's spelling."""

import pytest
from django.template import Context, Template

from agentlab.common.cards import read_cards


def test_cards_are_read_from_one_text_or_a_list() -> None:
    for spelt in ("AhTd", "Ah Td", ["Ah", "Td"]):
        found = read_cards(spelt)
        assert found is not None
        assert [card.text for card in found] == ["A♥\ufe0e", "T♦\ufe0e"]
        assert [card.name for card in found] == ["ace of hearts", "ten of diamonds"]


def test_no_cards_at_all_is_an_empty_board() -> None:
    assert read_cards([]) == []


@pytest.mark.parametrize("value", ["Ax", "10h", ["Ah", 3], None, 7, "Ah!"])
def test_what_is_not_cards_is_not_guessed(value: object) -> None:
    assert read_cards(value) is None


def test_a_page_shows_cards_with_their_names_and_anything_else_as_written() -> None:
    page = Template("{% load site %}{{ good|cards }} {{ bad|cards }}")
    shown = page.render(Context({"good": "Ks??", "bad": "<b>Ah"}))
    assert '<span class="card card-s" role="img" aria-label="king of spades">K♠\ufe0e</span>' in shown
    assert 'aria-label="unknown card">??</span>' in shown
    assert "&lt;b&gt;Ah" in shown
