"""A world of a size, with the same subjects in a small one and a big one: the pages that are asked for speak of them.

`tests/site/world.py` makes what the routes name; beside it stand an agent that plays in every second hand, one that
played three, two that have not played for long, and hands that are hot, kept, gone, or very long.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from agentlab.agents.models import HandResult, InferenceCharge
from tests.load import turns
from tests.load.crowd import Crowd, gather, murmur, watch
from tests.load.loading import Say, load, settle
from tests.load.rooms import factory_runs, study, study_runs
from tests.load.sizes import Size
from tests.load.turns import BUSY, QUIET, VETERANS
from tests.site import world as routes

HOT, KEPT, GONE, LONG, MARATHON = "hot", "kept", "gone", "long", "marathon"  # tables, each with a hand 1
LONG_TURNS = 200  # of nine agents, in the buffer
MARATHON_TURNS = 1_000  # of one agent that never ends its hand, in the ledger alone
FACES = (BUSY, "agent-0001", "agent-0002", "agent-0003", "agent-0004", QUIET)


@dataclass(frozen=True)
class World:
    """What the pages need to know of a world."""

    crowd: Crowd
    named: routes.World  # what the routes' URLs speak of
    run: int  # a factory run with eight attempts
    study: int
    begin: datetime
    end: datetime


def fill(size: Size, snapshots: Path, say: Say) -> World:
    """Everything, into an empty database and an empty capture Redis."""
    settings.FACTORY_SNAPSHOT_ROOT = snapshots
    end = timezone.now() - timedelta(minutes=10)
    begin = end - timedelta(days=size.days)
    say("people, agents, whispers, audit")
    crowd = gather(size, begin, end, say)
    say(f"ledger: {size.turns:,} rows")
    _play(size, crowd, begin, end, say)
    _subjects(begin, end)
    say("studies")
    study_runs(size.studies, crowd.many, crowd.few, end, say)
    opened = study(size.opened, crowd.many)
    say("factory runs")
    run = factory_runs(size.runs, crowd.many, crowd.few, end, say)
    named = routes.build(crowd.many, snapshots)
    say("the database tidies up")
    settle()
    return World(crowd, named, run, opened.pk, begin, end)


def grow(world: World, size: Size, say: Say) -> None:
    """Adds a world's worth of rows that are older than those which are there; the subjects stay what they are."""
    end, begin = world.begin, world.begin - timedelta(days=size.days)
    _play(replace(size, hot=1), world.crowd, begin, end, say, seed=2)
    murmur(world.crowd, size.whispers, begin, end, say)
    watch(world.crowd, size, begin, end, say)
    User.objects.bulk_create(User(username=f"later-{number}") for number in range(size.owners))
    study_runs(size.studies, world.crowd.many, world.crowd.few, end, say)
    factory_runs(size.runs, world.crowd.many, world.crowd.few, end, say)
    settle()


def _play(size: Size, crowd: Crowd, begin: datetime, end: datetime, say: Say, seed: int = 1) -> None:
    played = turns.Played(size, begin, end, crowd.agents, seed)
    load(InferenceCharge, turns.LEDGER, played, say)
    load(HandResult, turns.RESULTS, played.results, say)
    say(f"kept: {len(played.kept):,} turns; hot: {len(played.hot):,} turns")
    turns.keep(played.kept, say)
    turns.heat(list(played.hot))


def _subjects(begin: datetime, end: datetime) -> None:
    """Hands of thirty turns that are the same in every world, a long one, and one that never ended."""
    whole = end - begin
    hot = turns.hand(HOT, 1, FACES, 30, end)
    kept = turns.hand(KEPT, 1, FACES, 30, begin + 0.6 * whole)
    gone = turns.hand(GONE, 1, FACES, 30, begin + 0.7 * whole)
    long = turns.hand(LONG, 1, (*FACES, "agent-0005", "agent-0006", "agent-0007"), LONG_TURNS, begin + 0.8 * whole)
    marathon = turns.hand(MARATHON, 1, ("agent-0009",), MARATHON_TURNS, begin + 0.5 * whole)
    few = [turns.hand("quiet", n, (QUIET, "agent-0001"), 12, begin + n * whole / 5) for n in (1, 2, 3)]
    old = turns.hand("old", 1, VETERANS, 12, begin + 0.01 * whole)
    turns.charge([hot, kept, gone, long, marathon, *few, old])
    turns.keep([*kept, *old])
    turns.heat([*hot, *long])
