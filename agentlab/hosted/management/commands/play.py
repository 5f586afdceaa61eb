"""`manage.py play`: hosted agents at tables of their own, every turn captured."""

import asyncio
import json
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import BaseCommand, CommandError
from django.db import DatabaseError, connections
from django.db.models import Count
from django.utils import timezone

from agentlab.agents import demo
from agentlab.agents.base_prompt import BASE_PROMPT
from agentlab.agents.ledger import SpoolError
from agentlab.agents.models import Agent, AgentVersion, InferenceCharge
from agentlab.common import local_site
from agentlab.common.commands import show_examples
from agentlab.common.text import on_a_terminal
from agentlab.hosted.deployments import NoSeat, leave, seat
from agentlab.hosted.game import LEAST_SEATS, MOST_SEATS
from agentlab.hosted.hand_numbers import open_table
from agentlab.hosted.house_roster import HOUSE, HouseAgent
from agentlab.hosted.model_adapters import Models
from agentlab.hosted.playing import Plan, Result, play
from agentlab.hosted.table_config import LONGEST_TABLE_ID
from agentlab.hosted.table_process import TableFailed
from agentlab.private_redis import PrivateRedis, PrivateRedisError

HANDS, HOUSE_SEATS = 20, 6
WATCH_PAUSE_MS = 2500


class Command(BaseCommand):
    help = "Plays hands with hosted agents and captures every turn."
    requires_system_checks = ()  # they ask Redis, which may not be there yet

    def add_arguments(self, parser: ArgumentParser) -> None:
        show_examples(
            parser,
            "manage.py play --hands 200 --agents 6 --json",
            "manage.py play --agent rocky --agent nit --pace watch --hands 0",
            "manage.py play --deal hands/ --seed 7            # cards, stacks and blinds of real hands",
            "manage.py play --model openai:gpt-4o-mini        # OPENAI_BASE_URL, OPENAI_API_KEY",
            more="The first Ctrl-C finishes the hand that is being played, a second one ends it at once.\n"
            "exit code: 0 all played · 1 refused, or no hand could be dealt · 2 wrong words · 130 Ctrl-C, 143 SIGTERM",
        )
        parser.add_argument(
            "--hands",
            type=_whole(0),
            help="how many, over all tables (20, or all of --deal once); 0: no end",
        )
        parser.add_argument(
            "--agents", type=_whole(LEAST_SEATS, MOST_SEATS), help="how many of the house, 2 to 9 (6, or 9 for --deal)"
        )
        parser.add_argument(
            "--agent", action="append", type=_text, metavar="ID", help="seat this one (repeat), not the house"
        )
        parser.add_argument("--tables", type=_whole(1, 50), default=1, help="how many, all with the same agents")
        parser.add_argument("--table", type=_table, metavar="ID", help="play on at this table instead of a new one")
        parser.add_argument(
            "--seed", type=_text, help="the same cards for the same seed; without one nobody can foretell them"
        )
        parser.add_argument(
            "--deal", type=_text, metavar="PATH", help="deal the hands of a PHH file, or of a folder of them"
        )
        parser.add_argument(
            "--model", type=_text, help="house, openai:NAME or answers:FILE in place of the versions' own"
        )
        parser.add_argument(
            "--pace",
            choices=["fast", "watch"],
            default="fast",
            help="fast as it can, or a hand in some ten seconds, each agent in a process of its own",
        )
        parser.add_argument("--json", action="store_true", help="the last line is a JSON object of counts")

    def handle(self, **options: Any) -> None:
        model = _model(options["model"])
        if (options["table"] or options["deal"]) and options["tables"] > 1:
            raise CommandError("--table and --deal are for one table")
        if options["agent"] and options["agents"]:
            raise CommandError("--agents is how many of the house play; with --agent, those that are named do")
        if twice := [agent for agent, times in Counter(options["agent"]).items() if times > 1]:
            raise CommandError(f"named twice: {on_a_terminal(', '.join(twice))}; an agent has one seat at a table")
        local_site.prepare()
        began = timezone.now()
        try:
            agents = _agents(options)
            with _capture_redis():
                result, tables = self._play(agents, model, options)
            reasons = _fallback_reasons(tables, began) if result.crew.fallbacks else []
        except (NoSeat, PrivateRedisError, SpoolError, TableFailed) as error:
            raise CommandError(str(error)) from None
        except DatabaseError as error:
            raise CommandError(f"the database cannot be used: {str(error).splitlines()[0]}") from None
        self._say(result, tables, reasons, as_json=options["json"])
        if result.ended_by:
            sys.exit(128 + result.ended_by)
        if result.skipped and not result.hands:
            raise CommandError("no hand could be dealt")

    def _play(self, agents: list[str], model: str, options: dict[str, Any]) -> tuple[Result, list[str]]:
        tables = [options["table"]] if options["table"] else [open_table() for _ in range(options["tables"])]
        for table in tables:
            for agent in agents:
                seat(agent, table, model=model)
        connections.close_all()  # forked children and threads open their own
        watch = options["pace"] == "watch"
        plan = Plan(
            agents=agents,
            tables=_shares(_hands(options["hands"], options["deal"]), tables),
            seed=options["seed"],
            model=model,
            min_turn_ms=settings.MIN_TURN_MS if watch else 0,
            pause_ms=WATCH_PAUSE_MS if watch else 0,
            apart=watch,
            deal=options["deal"] or "",
        )
        progress = self._progress if sys.stderr.isatty() else None
        try:
            result = asyncio.run(play(plan, on_hands=progress, on_asked_to_end=self._ending))
        finally:
            if progress:
                self.stderr.write("")
            for table in tables:
                leave(table)
        return result, tables

    def _progress(self, hands: int, turns: int) -> None:
        sys.stderr.write(f"\r{hands} hands, {turns} turns ")
        sys.stderr.flush()

    def _ending(self, seconds: float) -> None:
        told = f"Ending after this hand, within {seconds:g} seconds; a second Ctrl-C ends it at once."
        with suppress(OSError):  # the terminal may be what has gone
            self.stderr.write(f"\n{told}" if sys.stderr.isatty() else told)
            self.stderr.flush()

    def _say(self, result: Result, tables: list[str], reasons: list[tuple[str, int]], *, as_json: bool) -> None:
        crew = result.crew
        if not crew.ledger_complete:
            self.stderr.write(f"the database is behind: rows wait in {settings.AGENT_LEDGER_SPOOL}")
        counts = {
            "hands": result.hands,
            "turns": crew.turns,
            "fallbacks": crew.fallbacks,
            "captured": crew.captured,
            "dropped": crew.dropped,
            "failed": crew.failed,
            "envelopes": len(crew.envelopes),
            "clamped": crew.clamped,
        }
        if result.untold:
            counts["untold"] = result.untold
            ended = "1 agent process" if result.untold == 1 else f"{result.untold} agent processes"
            self.stderr.write(f"{ended} ended without a word: the ledger has turns that these counts lack")
        for source, reason in result.skipped.items():
            self.stderr.write(on_a_terminal(f"not dealt: {source}: {reason}"))
        if as_json:
            self.stdout.write(json.dumps({**counts, "tables": tables}))
        else:
            self.stdout.write(", ".join(f"{value} {name}" for name, value in counts.items()))
            for reason, turns in reasons:
                self.stdout.write(on_a_terminal(f"fallback: {turns} × {reason or 'no reason known'}"))
            self.stdout.write(f"tables: {' '.join(tables)}")


def _model(asked: str | None) -> str:
    """The model that plays in place of the versions' own, or "" for none. Raises CommandError."""
    model = asked or ("" if settings.AGENTLAB_MODEL == "house" else settings.AGENTLAB_MODEL)
    if model:
        try:
            Models(base_url=settings.OPENAI_BASE_URL, api_key=settings.OPENAI_API_KEY).open(model)
        except ValueError as error:
            raise CommandError(str(error)) from None
    return model


def _agents(options: dict[str, Any]) -> list[str]:
    """Those that were named, else the first of the house. Raises NoSeat where they are too few."""
    named = options["agent"] or []
    askable = [agent for agent in named if agent.isprintable()]
    there = set(Agent.objects.filter(pk__in=askable).values_list("pk", flat=True))
    if unknown := [agent for agent in named if agent not in there]:
        raise NoSeat(f"no such agent: {on_a_terminal(', '.join(unknown))}")
    agents = named or _house(options["agents"] or (MOST_SEATS if options["deal"] else HOUSE_SEATS))
    if not LEAST_SEATS <= len(agents) <= MOST_SEATS:
        raise NoSeat(f"a table needs {LEAST_SEATS} to {MOST_SEATS} agents, not {len(agents)}")
    return agents


def _fallback_reasons(tables: list[str], since: datetime) -> list[tuple[str, int]]:
    """The three most frequent reasons of this play's turns without a decision, as the ledger has them."""
    turns = InferenceCharge.objects.filter(table_id__in=tables, is_fallback=True, played_at__gte=since)
    return list(turns.values_list("fallback_reason").annotate(turns=Count("id")).order_by("-turns")[:3])


def _house(count: int) -> list[str]:
    """The first house agents, published where they are not; what an owner has published since stays."""
    residents = HOUSE[:count] if settings.LOCAL else _the_houses_own()[:count]
    if len(residents) < count:
        raise NoSeat("people's agents have the names of the house: name who shall play with --agent")
    published = set(AgentVersion.objects.values_list("agent_id", flat=True))
    new = [one for one in residents if one.slug not in published]
    owners = demo.OWNERS if settings.LOCAL else (demo.HOUSE_OWNER,)
    demo.ensure_house(new, base_prompt=BASE_PROMPT, owned_by=owners)
    return [one.slug for one in residents]


def _the_houses_own() -> list[HouseAgent]:
    """Those whose id no person's agent has. The house must not act for an account that somebody can sign in to."""
    owner = User.objects.filter(username=demo.HOUSE_OWNER).first()
    if owner and owner.has_usable_password():
        raise NoSeat(f"the user {demo.HOUSE_OWNER} is a person: name who shall play with --agent")
    taken = set(Agent.objects.exclude(owner__username=demo.HOUSE_OWNER).values_list("pk", flat=True))
    return [one for one in HOUSE if one.slug not in taken]


def _hands(asked: int | None, deal: str | None) -> int:
    """0 is without end, and for files: each of their hands once."""
    return asked if asked is not None else 0 if deal else HANDS


def _shares(hands: int, tables: list[str]) -> dict[str, int | None]:
    """All hands shared out between the tables; 0 is without end."""
    if hands == 0:
        return dict.fromkeys(tables)
    each, rest = divmod(hands, len(tables))
    return {table: each + (place < rest) for place, table in enumerate(tables)}


@contextmanager
def _capture_redis() -> Iterator[None]:
    """The Redis that the environment names, or the private one that runs, or one for the life of the block."""
    server = PrivateRedis(settings.PRIVATE_REDIS_SOCKET)
    if not settings.LOCAL and server.url == settings.AGENT_CAPTURE_REDIS_URL:  # what it held would go with it, unread
        raise PrivateRedisError("AGENT_CAPTURE_REDIS_URL is not set: name the Redis that the pages read")
    if server.url != settings.AGENT_CAPTURE_REDIS_URL or server.is_up():
        yield
        return
    with server:
        yield


def _text(given: str) -> str:
    """Not empty, as of a variable that is not set, and nothing that no process could be told."""
    if not given or any("\ud800" <= character <= "\udfff" for character in given):
        raise ArgumentTypeError("text in UTF-8, and not empty")
    return given


def _table(given: str) -> str:
    if not given.isprintable() or not 0 < len(given) <= LONGEST_TABLE_ID:
        raise ArgumentTypeError(f"a table's id has 1 to {LONGEST_TABLE_ID} printable characters")
    return given


def _whole(least: int, most: int = 10**9) -> Any:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise ArgumentTypeError(f"a whole number from {least} to {most}, not {text!r}")
        return int(text)

    return read
