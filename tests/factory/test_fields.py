"""Text that comes back as it went in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.fields import escape, unescape
from factory.models import FactoryRun, RunNote

any_text = st.text(st.characters(exclude_categories=()))


@given(any_text)
def test_any_string_survives_the_escape(text: str) -> None:  # FA-3
    stored = escape(text)
    assert unescape(stored) == text
    assert "\x00" not in stored
    stored.encode()


@given(st.text(st.sampled_from("\x1a01ud83\x00\ud83d")))
def test_text_that_looks_escaped_stays_text(text: str) -> None:  # CAP-9 FA-3
    assert unescape(escape(text)) == text


@pytest.mark.parametrize("text", ["plain", "é\u202e\u2028", "\U0001f600"])
def test_ordinary_text_is_stored_as_itself(text: str) -> None:  # FA-3
    assert escape(text) == text


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["a\x00b", "half \ud83d", "\udcff name", "\x1a0"])
def test_the_database_gives_it_back(text: str) -> None:  # FA-3
    from django.utils import timezone

    run = FactoryRun.objects.create(workflow="ask", provider="pi", task=text, request_path=text)
    RunNote.objects.create(run=run, text=text, at=timezone.now())
    run.refresh_from_db()
    assert run.task == run.request_path == run.notes.get().text == text
    assert FactoryRun.objects.filter(task=text).exists()
