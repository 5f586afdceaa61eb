"""The factory's pages: read the request, call one selector, render. Everything has a URL and works without script."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import urlencode

from django.db.models import Max
from django.db.models.functions import Substr
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseStopPolling

from agentlab.common.paging import Pager, numbered, page_number
from agentlab.common.raw import raw_text
from agentlab.common.text import TextBlock, first_line, visible
from factory.artifacts import Refused
from factory.called import OPENING
from factory.calls import KIND_WORDS
from factory.fields import ExactTextField
from factory.masking import without_secrets
from factory.models import AgentAttempt, AgentAttemptInput, AgentToolCall, FactoryRun, State
from factory.outcomes import OUTPUT_LIMIT, in_short
from factory.panel import InputPanel, Task
from factory.reading import (
    AttemptPage,
    ModelsUsed,
    RunQuery,
    asked_of,
    attempts_of,
    get_attempt,
    get_input,
    get_run,
    list_runs,
    load_artifact,
    models_of,
    page_of_attempts,
    page_with,
    panel_of,
    snapshots_of,
)
from factory.story import Step, Words, is_ordered, tell, words

TOOLS_SHOWN = 100
PROBLEMS_SHOWN, NOTES_SHOWN, MOST_NOTES = 5, 2, 100
LONG_ERROR = 400
TEXTS = {
    "error": "Failure",
    "task": "Task instructions",
    "user": "User message",
    "system": "System message",
    "reply": "Reply",
    "check": "What it printed",
    "launch": "Launch command",
}
_FIELDS = {
    "error": "error",
    "user": "user_prompt",
    "system": "system_prompt",
    "reply": "reply",
    "check": "check_output",
    "launch": "launch_command",
}


@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    """The list, with its search."""
    form = {name: request.GET.get(name, "").strip() for name in ("q", "model", "state", "since", "until")}
    try:
        query = _run_query(form)
        page = list_runs(request.user, query, before=_cursor(request, "before"), after=_cursor(request, "after"))
    except ValueError as problem:
        context = {"form": form, "states": State.values, "problem": str(problem)}
        return render(request, "factory/runs.html", context, status=400)
    kept = {name: value for name, value in form.items() if value}
    pager = Pager(
        newer_url=_link(kept, after=page.newer) if page.newer else "",
        older_url=_link(kept, before=page.older) if page.older else "",
    )
    found = {"rows": page.rows, "pager": pager, "searched": bool(kept), "reading": "read" in request.GET}
    return render(request, "factory/runs.html", {"form": form, "states": State.values, **found})


def _run_query(form: dict[str, str]) -> RunQuery:
    """Raises ValueError with a sentence for the person who typed."""
    if any("\0" in value for value in form.values()):
        raise ValueError("A search cannot hold the character NUL.")
    if form["state"] and form["state"] not in State.values:
        raise ValueError(f"A run is {', '.join(State.values[:-1])} or {State.values[-1]}.")
    since, until = _day(form["since"]), _day(form["until"])
    if since and until and since > until:
        raise ValueError(f"From {since} is after To {until}: no day lies between them.")
    return RunQuery(form["q"], form["model"], form["state"], since, until)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise ValueError("A date is written like 2026-11-29.") from None


def _cursor(request: HttpRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise ValueError("This page of the list does not exist.")
    return int(text)


def _link(kept: dict[str, str], **cursor: int) -> str:
    return f"{reverse('factory')}?{urlencode({**kept, **cursor})}"


@dataclass(frozen=True)
class AttemptRow:
    """A line of the run's table; bars are in seconds since the run began."""

    attempt: AgentAttempt
    start: float | None
    end: float | None
    kind: str
    retries: int | None
    follows: int | None
    problem: str
    asked: str | None


@require_safe
def run(request: HttpRequest, run_id: int) -> HttpResponse:
    row = get_run(request.user, run_id)
    return render(request, "factory/run.html", _run_context(request, row))


@require_safe
def run_live(request: HttpRequest, run_id: int) -> HttpResponse:
    """The part of a run's page that asks again while it runs; 286 ends the asking."""
    row = get_run(request.user, run_id)
    response = render(request, "factory/_run_live.html", _run_context(request, row))
    if row.state == State.RUNNING:
        return response
    return HttpResponseStopPolling(response.content)


def _run_context(request: HttpRequest, row: FactoryRun) -> dict[str, Any]:
    page = page_of_attempts(row, request.GET.get("page"))
    rows, total = _timed(row, page)
    lasted = _seconds(row.started_at, row.ended_at or datetime.now(UTC))
    notes = list(row.notes.order_by("-is_error", "pk")[: MOST_NOTES + 1])
    # The attempts are what matters: problems stand before them, and of other notes only what is short.
    problems = sum(note.is_error for note in notes[:PROBLEMS_SHOWN])
    first = len(notes) if len(notes) <= problems + NOTES_SHOWN else problems
    url = reverse("factory-run", args=[row.pk])
    return {
        "run": row,
        "rows": rows,
        "has_kinds": any(line.kind for line in rows),
        "models": models_of([row.pk]).get(row.pk, ModelsUsed()),
        "total": total,
        "page": page,
        "page_url": _run_url(row.pk, page.number),
        "pager": numbered(url, page.number, page.pages),
        "snapshots": snapshots_of(row),
        "notes": notes[:first],
        "more_notes": notes[first:MOST_NOTES],
        "notes_left_out": len(notes) > MOST_NOTES,
        "task": TextBlock(id="request", label="Request", text=row.task, level=2) if row.task else None,
        "milliseconds": None if lasted is None else lasted * 1000,
    }


def _run_url(run_id: int, page: int) -> str:
    url = reverse("factory-run", args=[run_id])
    return f"{url}?page={page}" if page > 1 else url


def _timed(row: FactoryRun, page: AttemptPage) -> tuple[list[AttemptRow], float]:
    """The attempts of a page on the clock of the whole run."""
    now, asked = datetime.now(UTC), asked_of(page.rows)
    began = min((at for at in (page.began, row.started_at) if at), default=None)
    rows = [
        AttemptRow(
            attempt=one,
            start=_seconds(began, one.started_at),
            end=_seconds(began, one.ended_at or (now if one.state == State.RUNNING else one.started_at)),
            kind=KIND_WORDS.get(one.send_kind or "", ""),
            retries=one.retries,
            follows=one.follows,
            problem=in_short(one.error),
            asked=asked.get(one.pk),
        )
        for one in page.rows
    ]
    ends = [_seconds(began, page.ended), *(line.end for line in rows)]
    return rows, max((end for end in ends if end is not None), default=0.0)


def _seconds(since: datetime | None, until: datetime | None) -> float | None:
    return None if since is None or until is None else max(0.0, (until - since).total_seconds())


@require_safe
def attempt(request: HttpRequest, run_id: int, number: int) -> HttpResponse:
    row = get_attempt(request.user, run_id, number)
    panel = panel_of(row)
    siblings = attempts_of(row.run)
    story, pager = _story(request, row)
    is_told = any(step.said for step in story)
    context = {
        "attempt": row,
        "run": row.run,
        "panel": panel,
        "texts": _blocks(row, panel, is_told=is_told),
        "story": story,
        "is_told": is_told,
        "last_words": _last_words(row) if is_told else None,
        "tools_pager": pager,
        "previous": _neighbour(siblings, number, -1),
        "next": _neighbour(siblings, number, 1),
        "count": len(siblings),
        "run_url": _run_url(run_id, page_with(number)),
        "session": _session(siblings, row),
        "long_error": len(row.error) > LONG_ERROR,
        "error_line": visible(first_line(in_short(row.error), 200)),
    }
    response = render(request, "factory/attempt.html", context)
    patch_vary_headers(response, ["HX-Request"])
    return response


def _story(request: HttpRequest, row: AgentAttempt) -> tuple[list[Step[AgentToolCall]], Pager | None]:
    """One page of what the agent said and did: a turn of many hours has thousands of tool calls."""
    calls, pager = _tools(request, row)
    placed = [(call, call.reply_offset) for call in calls]
    since = 0
    if calls and calls[0].seq > 1 and is_ordered(placed):
        earlier = row.tool_calls.filter(seq__lt=calls[0].seq, reply_offset__isnull=False).order_by("-seq")
        since = earlier.values_list("reply_offset", flat=True).first() or 0
    return tell(row.reply, placed, since=since, to_the_end=pager is None or not pager.older_url), pager


def _last_words(row: AgentAttempt) -> Words | None:
    """What an agent says after its last tool call is mostly what it came to."""
    said_before = row.tool_calls.aggregate(offset=Max("reply_offset"))["offset"] or 0
    return words(row.reply or "", since=said_before)


def _tools(request: HttpRequest, row: AgentAttempt) -> tuple[Sequence[AgentToolCall], Pager | None]:
    calls = row.tool_calls.defer("arguments", "output").order_by("seq")
    calls = calls.annotate(opening=Substr("arguments", 1, OPENING, output_field=ExactTextField()))
    page = list(calls[: TOOLS_SHOWN + 1])
    if len(page) <= TOOLS_SHOWN:
        return page, None
    count = -(-calls.count() // TOOLS_SHOWN)
    number = page_number(request.GET.get("page"), count)
    plain_pager = numbered(reverse("factory-attempt", args=[row.run_id, row.number]), number, count)
    newer, older = (f"{url}#tools" if url else "" for url in (plain_pager.newer_url, plain_pager.older_url))
    start = (number - 1) * TOOLS_SHOWN
    return list(calls[start : start + TOOLS_SHOWN]), replace(plain_pager, newer_url=newer, older_url=older)


def _neighbour(siblings: list[AgentAttempt], number: int, by: int) -> AgentAttempt | None:
    at = next(place for place, one in enumerate(siblings) if one.number == number) + by
    return siblings[at] if 0 <= at < len(siblings) else None


def _session(siblings: Iterable[AgentAttempt], row: AgentAttempt) -> list[AgentAttempt | None]:
    """The turns of the same session, for the line at the top; a session nobody named is no session. Of a long one: the
    first, the last and those around this one, with None for what is left out between them."""
    turns = [one for one in siblings if row.session_id is not None and one.session_id == row.session_id]
    if len(turns) <= 9:
        return [*turns]
    here = next(place for place, one in enumerate(turns) if one.pk == row.pk)
    wanted = sorted({0, *range(max(0, here - 2), min(len(turns), here + 3)), len(turns) - 1})
    line: list[AgentAttempt | None] = []
    for before, place in zip([-1, *wanted], wanted, strict=False):
        line += [None] if place > before + 1 else []
        line.append(turns[place])
    return line


def _blocks(row: AgentAttempt, panel: InputPanel, *, is_told: bool) -> dict[str, TextBlock]:
    """The long texts of an attempt by their names; what was not recorded has none. With `is_told` the reply stands in
    its order among the tool calls too, and its block is closed."""
    found = {name: _text_of(row, name, panel.task) for name in TEXTS}
    blocks = {name: _block(row, name, text) for name, text in found.items() if text}
    if "user" in blocks:
        # The one message stands in up to three places; each block needs an anchor of its own.
        blocks["exact"] = replace(blocks["user"], id="exact-user", lazy=True)
        blocks["whole"] = replace(blocks["user"], id="whole-user", open=True)
    if is_told and "reply" in blocks:
        blocks["reply"] = replace(blocks["reply"], open=False, note="in one piece; below among the tool calls")
    return blocks


def _text_of(row: AgentAttempt, name: str, task: Task) -> str | None:
    return task.text if name == "task" else getattr(row, _FIELDS[name])


def _block(row: AgentAttempt, name: str, text: str, *, whole: bool = False, alone: bool = False) -> TextBlock:
    place = [row.run_id, row.number, name]
    return TextBlock(
        id=name,
        label=TEXTS[name],
        text=text,
        raw_url=reverse("factory-raw", args=place),
        part_url="" if alone else reverse("factory-text", args=place),
        subject=f"attempt {row.number}",
        # A correction's few words are what is new on this turn; an opening message repeats the task above it.
        open=alone
        or name in {"task", "reply", "check"}
        or (name == "user" and row.send_kind in {"parse_retry", "gate_retry"}),
        lazy=name in {"system", "launch", "error"},
        whole=whole,
        level=2 if name in {"task", "reply"} else 3,
    )


def _named_text(request: HttpRequest, run_id: int, number: int, name: str) -> tuple[AgentAttempt, str]:
    """Raises Http404, for a text that was not recorded too."""
    row = get_attempt(request.user, run_id, number)
    if name not in TEXTS:
        raise Http404
    text = panel_of(row).task.text if name == "task" else getattr(row, _FIELDS[name])
    if text is None or (name == "error" and not text):
        raise Http404
    return row, text


@require_safe
def text(request: HttpRequest, run_id: int, number: int, name: str) -> HttpResponse:
    """One long text: a page of its own, or the fragment that htmx puts into its place."""
    row, words = _named_text(request, run_id, number, name)
    block = _block(row, name, words, whole="all" in request.GET, alone=True)
    return _part(request, row, block)


def _part(request: HttpRequest, row: AgentAttempt, block: TextBlock) -> HttpResponse:
    fragment = bool(getattr(request, "htmx", False))
    template = "parts/_text_body.html" if fragment else "factory/text.html"
    response = render(request, template, {"attempt": row, "run": row.run, "block": block, "text": block})
    patch_vary_headers(response, ["HX-Request"])
    return response


@require_safe
def raw(request: HttpRequest, run_id: int, number: int, name: str) -> HttpResponse:
    _, words = _named_text(request, run_id, number, name)
    return raw_text(words, f"run-{run_id}-attempt-{number}-{name}")


def _tool_call(request: HttpRequest, run_id: int, number: int, seq: int) -> tuple[AgentAttempt, AgentToolCall]:
    row = get_attempt(request.user, run_id, number)
    call = row.tool_calls.filter(seq=seq).first()
    if call is None:
        raise Http404
    return row, call


@require_safe
def tool(request: HttpRequest, run_id: int, number: int, seq: int) -> HttpResponse:
    """One tool call: its arguments and its output."""
    row, call = _tool_call(request, run_id, number, seq)
    words, hidden = without_secrets(call.arguments)
    shown: dict[str, Any] = {
        "part_url": request.path,
        "open": True,
        "whole": "all" in request.GET,
        "inline_bytes": 10**9,
    }
    arguments = TextBlock(id=f"tool-{seq}-arguments", label="Arguments", text=words, **shown)
    output = None
    if call.output is not None:
        words, more = without_secrets(call.output)
        raw_url = reverse("factory-tool-raw", args=[run_id, number, seq])
        output = TextBlock(id=f"tool-{seq}-output", label="Output", text=words, raw_url=raw_url, **shown)
        hidden += more
    was_cut = call.output is not None and len(call.output) >= OUTPUT_LIMIT
    context = {"attempt": row, "run": row.run, "call": call, "arguments": arguments, "output": output, "cut": was_cut}
    context["hidden"] = hidden
    fragment = bool(getattr(request, "htmx", False))
    response = render(request, "factory/_tool.html" if fragment else "factory/tool.html", context)
    patch_vary_headers(response, ["HX-Request"])
    return response


@require_safe
def tool_raw(request: HttpRequest, run_id: int, number: int, seq: int) -> HttpResponse:
    _, call = _tool_call(request, run_id, number, seq)
    if call.output is None:
        raise Http404
    return raw_text(call.output, f"run-{run_id}-attempt-{number}-tool-{seq}")


@dataclass(frozen=True)
class Preview:
    """What is shown of an input's bytes: an image by its URL, a page of text, or why there is nothing."""

    raw_url: str
    sha256: str = ""
    image: bool = False
    text: str | None = None
    pager: Pager | None = None
    refusal: str = ""
    status: int = 200


@require_safe
def preview(request: HttpRequest, input_id: int) -> HttpResponse:
    """An input's preview: a page of its own, or the fragment under its row."""
    row = get_input(request.user, input_id)
    shown = _preview(request, row)
    fragment = bool(getattr(request, "htmx", False))
    name = row.label if row.label.strip() else f"input {row.seq}"
    context = {"input": row, "name": name, "attempt": row.attempt, "run": row.attempt.run, "preview": shown}
    template = "factory/_preview.html" if fragment else "factory/preview.html"
    response = render(request, template, context, status=shown.status)
    patch_vary_headers(response, ["HX-Request"])
    return response


def _preview(request: HttpRequest, row: AgentAttemptInput) -> Preview:
    raw_url = reverse("collector-input", args=[row.pk])
    try:
        artifact = load_artifact(row)
    except Refused as refusal:
        # 404, 409, 410 and 422 are what htmx puts in place; a fragment says which of the others it is in words.
        status = refusal.status if refusal.status in {404, 409, 410} else 422
        return Preview(raw_url, refusal=refusal.sentence, status=status)
    if artifact.media.preview_kind == "image":
        return Preview(raw_url, artifact.sha256, image=True)
    count = artifact.page_count
    number = page_number(request.GET.get("page"), count)
    pager = numbered(request.path, number, count) if count > 1 else None
    page_url = f"{raw_url}?page={number}" if count > 1 else raw_url
    return Preview(page_url, artifact.sha256, text=artifact.page(number), pager=pager)
