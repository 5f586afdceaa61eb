"""The pages of studies: read the request, ask `reading`, render. Every one asks first whose the study is."""

import csv
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django_htmx.http import HttpResponseStopPolling

from agentlab.common.charts import Marker
from agentlab.common.paging import Pager, numbered, page_number
from agentlab.common.raw import raw_text
from agentlab.common.text import TextBlock
from agentlab.persona import comparing, exporting, reading, removing, showing, verifying
from agentlab.persona.adapters import paid
from agentlab.persona.events import Arrived, Snapshot
from agentlab.persona.models import StudyPersona, StudyRun, TraceEvent
from agentlab.persona.replaying import stored_events
from agentlab.persona.runs import RunError, head_of, is_running
from agentlab.persona.state import MEMORY_TEXT
from agentlab.persona.study import StudyHead
from agentlab.persona.trace import fold
from agentlab.persona.turn_reading import TurnPage, compare_states, read_turn

PAGE = 25
TURNS = 50  # of a persona on one page
MEMORIES = 100  # of a persona on its page
CHOICES = 500  # personas in the select; more are reached through the list
LONGEST_NAME = 100
LARGEST = 2**63 - 1  # a larger number is in no database
TEXTS = {"shown": "Text", "prompt": "Prompt", "response": "Response", "text": "What it wrote"}
SUBJECTS = {"shown": "what was shown", "prompt": "the prompt", "response": "the response", "text": "what it wrote"}


@require_safe
def studies(request: HttpRequest) -> HttpResponse:
    """The studies that this user may see, newest first."""
    rows, pager = _paged(request, reading.runs_of(request.user))
    return render(request, "persona/studies.html", {"rows": rows, "pager": pager})


@require_safe
def study(request: HttpRequest, number: int) -> HttpResponse:
    """One study: beliefs, reactions, probes, replay, and its personas. `?persona=KEY` draws one of them strongly."""
    run = _run(request, number)
    key = request.GET.get("persona", "")
    chosen = _who_of(run, key)
    at = chosen.number if chosen else None
    found = reading.trajectories(run, reading.drawn_numbers(run, at))
    names = dict(run.people.filter(number__in=next(iter(found.lines.values()), {})).values_list("number", "name"))
    markers = _reflections(run, chosen) if chosen else []
    counted, turns = reading.reactions(run), reading.charted_turns(run.turns_each)
    people, pager = _people(request, run)
    made = head_of(run)
    context = {
        **_standing(run),
        "study": made,
        "topics": sorted(made.rules.topics) if made else sorted(found.lines),
        "chosen": chosen,
        "choices": _choices(run, chosen),
        "others": [(one.pk, showing.told_apart(one)) for one in reading.others(run)],
        "query": _query(request),
        "charts": [showing.belief_chart(topic, found, names, at, markers) for topic in sorted(found.lines)],
        "table": showing.belief_table(found, at, chosen.name if chosen else ""),
        "drawn": len(names),
        "unread": found.unread,
        "reactions": showing.reaction_charts(counted, turns),
        "reaction_step": turns[1] - turns[0] if len(turns) > 1 else 1,
        "reaction_table": showing.reaction_table(counted, turns),
        "drift_above": made.rules.drift_above if made else None,
        "probe_counts": reading.probe_counts(run),
        "probe_turns": _probe_turns(run, made),
        "drifts": _named(run, reading.probes(run, drifted=True, limit=20)),
        "people": people,
        "pager": pager,
    }
    return render(request, "persona/study.html", context)


@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    """Two studies side by side, `?a=2&b=3`. `&persona=KEY` draws that one's lines over the medians of both."""
    runs = [_run(request, _number(request.GET.get(name, ""))) for name in ("a", "b")]
    key = request.GET.get("persona", "")
    people = [_who_of(run, key) for run in runs] if key else [None, None]
    if key and not any(people):
        raise Http404
    chosen = people[0] if all(people) else None
    a, b = (comparing.side(run, who if chosen else None) for run, who in zip(runs, people, strict=True))
    name = chosen.name if chosen else ""
    context = {
        "sides": (a, b),
        "people": people,
        "chosen": chosen,
        "choices": _with_chosen(list(comparing.shared(*runs)[:CHOICES]), chosen),
        "charts": comparing.charts(a, b, name),
        "table": comparing.by_turn(a, b, name),
        "finals": comparing.finals(a, b),
        "own_finals": comparing.own_finals(a, b),
        "only": [(one.run, topics) for one, topics in ((a, comparing.only(a, b)), (b, comparing.only(b, a))) if topics],
        "actions": comparing.actions(a, b),
        "changes": comparing.changes(*runs),
        "drawn": reading.DRAWN,
    }
    return render(request, "persona/compare.html", context)


@require_safe
def live(request: HttpRequest, number: int) -> HttpResponse:
    """How the study stands, for its page to ask again while something moves."""
    run = _run(request, number)
    context = _standing(run)
    response = render(request, "persona/_standing.html", context)
    if not context["moves"]:
        response = HttpResponseStopPolling(response.content)
    patch_vary_headers(response, ["HX-Request"])
    return response


@require_POST
def verify(request: HttpRequest, number: int) -> HttpResponse:
    """Begin a verification; the page then shows how it goes."""
    run = _run(request, number)
    verifying.start(run)
    if getattr(request, "htmx", False):
        run.refresh_from_db()
        return render(request, "persona/_standing.html", _standing(run))
    messages.info(request, "The trace is being replayed. Reload to see what came out.")
    return redirect("study", number)


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, number: int) -> HttpResponse:
    """Says what goes and asks once; then the study is gone."""
    run = _run(request, number)
    if request.method == "POST":
        try:
            removing.remove(run, request.user)
        except RunError as refusal:
            messages.error(request, f"Not deleted: {refusal}.")
            return redirect("study", number)
        messages.success(request, f"Study {number} is deleted.")
        return redirect("personas")
    context = {"run": run, "holds": removing.holds(run), "runs": is_running(run)}
    return render(request, "persona/delete.html", context)


@require_safe
def persona(request: HttpRequest, number: int, key: str) -> HttpResponse:
    """One persona: who it is, how its beliefs went, what it did turn by turn, what it remembers, and its probes."""
    run = _run(request, number)
    who = _who(run, key)
    found = reading.trajectories(run, [who.number])
    state = reading.state_of(run, who.number)
    last = reading.last_turn_of(run, who.number)
    probe_total = reading.probe_total(run, who.number)
    made = head_of(run)
    pages = max(1, -(-last // TURNS))
    page = page_number(request.GET.get("page"), pages)
    newest = last - (page - 1) * TURNS
    memories = sorted(state.memories, key=lambda m: (m.time, m.id), reverse=True) if state else []
    context = {
        "run": run,
        "who": who,
        "arrived": _arrived(run, who),
        "state": state,
        "calls": made.calls(who.number, run.personas) if made else 0,
        "last": last,
        "probe_turns": _probe_turns(run, made),
        "probe_total": probe_total,
        "charts": [
            showing.belief_chart(topic, found, {}, who.number, _reflections(run, who)) for topic in sorted(found.lines)
        ],
        "table": showing.belief_table(found, who.number, who.name),
        "rows": reading.turn_rows(run, who.number, max(1, newest - TURNS + 1), newest) if last else [],
        "pager": numbered(request.path, page, pages),
        "memories": memories[:MEMORIES],
        "more_memories": max(0, len(memories) - MEMORIES),
        "probes": reading.probes(run, who.number),
        "drift_above": made.rules.drift_above if made else None,
        "reacted": reading.reacted_by(run, who.number),
    }
    return render(request, "persona/persona.html", context)


@require_safe
def turn(request: HttpRequest, number: int, key: str, turn: int) -> HttpResponse:
    """One turn of one persona."""
    run = _run(request, number)
    who = _who(run, key)
    page = _turn(run, who, turn)
    made = head_of(run)
    context = {
        "run": run,
        "who": who,
        "page": page,
        "rules": made.rules if made else None,
        "drift_above": made.rules.drift_above if made else None,
        "draw": _draw(run, who, page, made),
        "derived": showing.derived(page, made.rules if made else None),
        "memory_text": MEMORY_TEXT,
        "last": reading.last_turn_of(run, who.number),
        "blocks": _blocks(run, who, page),
    }
    return render(request, "persona/turn.html", context)


@require_safe
def raw(request: HttpRequest, number: int, key: str, turn: int, part: str) -> HttpResponse:
    """The exact stored text of one part of a turn."""
    run = _run(request, number)
    who = _who(run, key)
    text = _texts(_turn(run, who, turn)).get(part)
    if text is None:
        raise Http404
    return raw_text(text, f"study-{number}-{key}-{turn}-{part}")


@require_safe
def beliefs_csv(request: HttpRequest, number: int) -> HttpResponseBase:
    """Every stance of every persona after every turn."""
    run = _run(request, number)
    return _download(_belief_lines(run), f"study-{number}-beliefs.csv", "text/csv; charset=utf-8")


@require_safe
def trace(request: HttpRequest, number: int) -> HttpResponseBase:
    """The whole study as lines of JSON, as `manage.py study export` writes it."""
    run = _run(request, number)
    lines = (f"{line}\n" for line in exporting.lines(run))
    return _download(lines, f"study-{number}.jsonl", "application/jsonl; charset=utf-8")


def _run(request: HttpRequest, number: int) -> StudyRun:
    return get_object_or_404(reading.runs_of(request.user), pk=number if number <= LARGEST else 0)


def _number(given: str) -> int:
    """A study's number out of a query; 0, which no study has, for anything else."""
    return int(given) if given.isascii() and given.isdigit() and len(given) < 20 else 0


def _who(run: StudyRun, key: str) -> StudyPersona:
    found = _who_of(run, key)
    if found is None:
        raise Http404
    return found


def _who_of(run: StudyRun, key: str) -> StudyPersona | None:
    return run.people.filter(key=key).first() if _plain(key) else None


def _turn(run: StudyRun, who: StudyPersona, turn: int) -> TurnPage:
    page = read_turn(run, who, turn) if turn <= run.turns_each else None
    if page is None:
        raise Http404
    return page


def _plain(key: str) -> bool:
    """Could this be a persona's id? PostgreSQL refuses to be asked about a NUL."""
    return 0 < len(key) <= LONGEST_NAME and "\0" not in key


def _standing(run: StudyRun) -> dict[str, Any]:
    """What `persona/_standing.html` shows: status, progress, replay.

    A verification whose process is gone is not called running. While a runner writes, there is nothing to verify yet.
    """
    failed = run.people.exclude(failed="")
    writes = run.status == StudyRun.Status.RUNNING
    verifies = run.replay == StudyRun.Replay.RUNNING and not run.cut_off
    return {
        "run": run,
        "may_verify": (not writes or run.silent) and not verifies,
        "paid": paid(run.model, run.embedder),
        "moves": writes or verifies,
        "total": run.personas * run.turns_each,
        "calls": showing.model_calls(run),
        "fallback": reading.first_fallback(run),
        "checkpoint_bytes": reading.checkpoint_bytes(run),
        "last_turn": reading.last_turn(run),
        "failed": failed.count(),
        "failures": reading.failures(run),
        **_difference(run),
    }


def _difference(run: StudyRun) -> dict[str, Any]:
    """Where the trace and a checkpoint part, and the two states side by side."""
    found = run.difference or {}
    who = run.people.filter(key=found.get("persona", "")).first() if run.replay == StudyRun.Replay.DIFFERS else None
    if who is None:
        return {"differs_at": None, "diff": []}
    replayed = fold(run.study_sha256, who.key, stored_events(run, who.number)).state
    return {"differs_at": who, "diff": compare_states(reading.state_of(run, who.number), replayed)}


def _reflections(run: StudyRun, who: StudyPersona) -> list[Marker]:
    return [
        Marker(float(at), f"reflection in turn {at}", reverse("study-turn", args=[run.pk, who.key, at]))
        for at in reading.reflected_turns(run, who.number)[:100]
    ]


def _paged(request: HttpRequest, rows: Any, anchor: str = "") -> tuple[Any, Pager]:
    """A page of rows, and links to its neighbours that keep what else was asked for and lead to `anchor`."""
    pages = max(1, -(-rows.count() // PAGE))
    page = page_number(request.GET.get("page"), pages)
    kept = {name: request.GET[name] for name in ("persona", "q") if request.GET.get(name)}
    pager = numbered(request.path, page, pages, **kept)
    links = {name: link + anchor for name in ("newer_url", "older_url") if (link := getattr(pager, name))}
    return rows[(page - 1) * PAGE : page * PAGE], replace(pager, **links)


def _people(request: HttpRequest, run: StudyRun) -> tuple[list[dict[str, Any]], Pager]:
    """A page of the study's personas with what each has done so far."""
    query = _query(request)
    rows = run.people.all()
    if query:
        rows = rows.filter(Q(name__icontains=query) | Q(key__icontains=query))
    found, pager = _paged(request, rows, "#personas")
    numbers = [one.number for one in found]
    counts, states = reading.counts_by_persona(run, numbers), reading.states_of(run, numbers)
    counted = {number: counts.get(number, {}) for number in numbers}
    people = [
        {
            "who": one,
            "state": states.get(one.number),
            **{kind: counted[one.number].get(kind, 0) for kind in ("reacted", "reflected", "kept", "drifted")},
        }
        for one in found
    ]
    return people, pager


def _query(request: HttpRequest) -> str:
    """The name that is looked for; "" where it can be nobody's."""
    query = request.GET.get("q", "").strip()[:LONGEST_NAME]
    return "" if "\0" in query else query


def _choices(run: StudyRun, chosen: StudyPersona | None) -> list[StudyPersona]:
    """The first personas, and the chosen one wherever it stands."""
    return _with_chosen(list(run.people.all()[:CHOICES]), chosen)


def _with_chosen(first: list[StudyPersona], chosen: StudyPersona | None) -> list[StudyPersona]:
    return [chosen, *first] if chosen and chosen not in first else first


def _probe_turns(run: StudyRun, made: StudyHead | None) -> int:
    """The turn of the first probe; 0 where there will be none."""
    every = made.rules.probe_every if made else 0
    return every if every <= run.turns_each else 0


def _draw(run: StudyRun, who: StudyPersona, page: TurnPage, made: StudyHead | None) -> showing.Draw | None:
    return showing.drawn(page.reacted, made.rules, run.study_sha256, who.key) if page.reacted and made else None


def _named(run: StudyRun, rows: list[reading.ProbeRow]) -> list[dict[str, Any]]:
    people = {one.number: one for one in run.people.filter(number__in={row.number for row in rows})}
    return [{"who": people[row.number], "turn": row.turn, "probed": row.probed} for row in rows if row.number in people]


def _arrived(run: StudyRun, who: StudyPersona) -> Arrived | None:
    row = TraceEvent.objects.filter(run=run, persona=who.number, turn=0, sequence=0).values_list("payload", flat=True)
    event = reading.readable(row[0]) if row else None
    return event if isinstance(event, Arrived) else None


def _texts(page: TurnPage) -> dict[str, str]:
    if page.reacted is None:
        return {}
    one = page.reacted
    found = {"shown": one.shown.text, "prompt": one.prompt, "response": one.response, "text": one.text}
    return {part: text for part, text in found.items() if text is not None}


def _blocks(run: StudyRun, who: StudyPersona, page: TurnPage) -> dict[str, TextBlock]:
    return {
        part: TextBlock(
            id=part,
            label=TEXTS[part],
            text=text,
            raw_url=reverse("study-raw", args=[run.pk, who.key, page.turn, part]),
            subject=SUBJECTS[part],
            open=part != "prompt",
        )
        for part, text in _texts(page).items()
    }


def _belief_lines(run: StudyRun) -> Iterator[str]:
    keys = dict(run.people.values_list("number", "key"))
    yield _csv_line(["persona", "turn", "topic", "stance", "confidence"])
    rows = TraceEvent.objects.filter(run=run, kind="snapshot").order_by("persona", "turn")
    for number, turn, payload in rows.values_list("persona", "turn", "payload").iterator(chunk_size=1000):
        snapshot = reading.readable(payload)
        if isinstance(snapshot, Snapshot):
            for one in snapshot.beliefs:
                yield _csv_line([keys.get(number, number), turn, _inert(one.topic), one.stance, one.confidence])


def _csv_line(cells: list[object]) -> str:
    line = StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()


def _inert(cell: str) -> str:
    """A spreadsheet takes a cell that begins so for a formula."""
    return f"'{cell}" if cell[:1] in "=+-@\t\r" else cell


def _download(lines: Iterator[str], name: str, kind: str) -> StreamingHttpResponse:
    response = StreamingHttpResponse(lines, content_type=kind)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
