"""Which hands there are: the ledger's lists of hands, and an agent's day in numbers.

The ledger grows for ever, so nothing here may read all of it: a list walks an index from its newest end and stops.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import CharField, Count, Exists, Model, OuterRef, Q, QuerySet, Sum, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Concat
from django.utils import timezone

from agentlab.agents.models import LOST, MARKS, ChoiceChange, HandResult, InferenceCharge, TurnNote
from capture.models import AgentCallRecord

MOST_HANDS = 100  # in one page of a list
DAY = timedelta(hours=24)  # one span wherever “the last 24 hours” are counted
ONLY = MARKS  # what a list may be narrowed to: hands in which at least one turn is so
OF_NEWER_ROWS = {"clamped": "change", "reconnected": "note"}  # by column: what the oldest rows of a ledger may not say
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CURSOR = re.compile(r"([0-9]{1,17})\.([0-9]{1,18})")  # microseconds since the epoch (17 digits: year 5138), row
HandId = tuple[str, int]
Place = tuple[int, str]  # of a turn in its hand: action index, agent


@dataclass(frozen=True, slots=True)
class RecentHand:
    """A hand in one line. Counts and actions are of the agents asked for."""

    table_id: str
    hand_number: int
    turns: int  # of the ledger: captured ones may have gone
    fallbacks: int
    kept: int  # durable rows
    lost: int  # captures dropped or failed
    agent_ids: list[str]  # in the order of their first action
    actions: list[str]  # in action order
    last_played_at: datetime
    agent_version_ids: list[str] = field(default_factory=list)  # that played, in the order of their first action
    clamped: int | None = None  # turns that are known to be; None where none is and it is not known of all
    reconnected: int | None = None  # turns whose memory seems to have begun in the middle of the hand; None likewise
    first: dict[str, Place] = field(default_factory=dict)  # the first turn of each kind that lists mark, by key of ONLY
    net: dict[str, int] = field(default_factory=dict)  # chips that an agent won or lost, where that is known

    @property
    def title(self) -> str:
        return f"{self.table_id}:{self.hand_number}"

    @property
    def fallback_only(self) -> bool:
        return 0 < self.turns == self.fallbacks

    def has(self, only: str) -> bool:
        """Whether a list that is narrowed to `only`, a key of ONLY, has this hand."""
        counts = {"clamped": self.clamped, "reconnected": self.reconnected}
        return bool((counts | {"fallback": self.fallbacks, "lost": self.lost})[only])


@dataclass(frozen=True, slots=True)
class RecentHands:
    """A page of hands, newest first. `next_before` is the cursor of the page after it, None at the end."""

    hands: list[RecentHand]
    next_before: str | None


@dataclass(frozen=True, slots=True)
class AgentDay:
    """What an agent did in the last 24 hours, and how many hands of it are kept in all."""

    turns: int = 0
    fallbacks: int = 0
    cost: Decimal | None = None  # US dollars, of the turns whose cost is known; None where none is
    kept_hands: int = 0
    clamped: int | None = 0  # turns that are known to be; None where none is and it is not known of all
    lost: int | None = 0  # captures dropped or failed; None where another host's version does not say
    net: int | None = None  # chips won or lost in the hands whose result is known; None where none is
    hands: int = 0  # how many that are


def recent_hands(
    before: str | None = None,
    limit: int = 25,
    agent_ids: Sequence[str] | None = None,
    *,
    kept: bool = False,
    only: str = "",
) -> RecentHands:
    """The ledger's hands, newest first; with `kept`, the kept ones, last kept first; with `agent_ids`, only turns of
    those agents count; with `only`, a key of ONLY, hands that have such a turn, by the last one. Raises ValueError for
    a cursor that is not one of ours, for another word, and for `kept` with `only`: kept rows do not say.

    Four queries, whatever the number of hands.
    """
    if only and (kept or only not in ONLY):
        raise ValueError("Hands are not listed by that.")
    limit = max(1, min(limit, MOST_HANDS))
    model, when = (AgentCallRecord, "pinned_at") if kept else (InferenceCharge, "played_at")
    older = _older_than(before, when) if before is not None else Q()
    such = _of_agents(model, agent_ids).filter(ONLY.get(only, Q()))
    rows = _last_of_each_hand(such, when).filter(older)
    if agent_ids is not None and len(agent_ids) > 1:
        rows = _newest_of_each(rows, set(agent_ids), limit + 1)
    last = list(rows.values_list("table_id", "hand_number", when, "id")[: limit + 1])
    page = last[:limit]
    hands = [(table_id, hand_number) for table_id, hand_number, _, _ in page]
    charges = _by_hand(_of_agents(InferenceCharge, agent_ids), hands)
    records = _by_hand(_of_agents(AgentCallRecord, agent_ids), hands)
    net = _net(_of_agents(HandResult, agent_ids), hands)
    found = [
        _recent((table, hand), at, charges[table, hand], records[table, hand], net[table, hand])
        for table, hand, at, _ in page
    ]
    return RecentHands(found, _cursor(page[-1][2], page[-1][3]) if len(last) > limit else None)


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The hands before and after one, in the order of the list of hands; None where there is none."""

    older: HandId | None = None
    newer: HandId | None = None


def neighbours(table_id: str, hand_number: int, *, agent_id: str) -> Neighbours:
    """The hands that this agent played before and after this one, at whatever table. Three queries of the ledger, each
    of which stops at its first row."""
    last = _last_of_each_hand(_of_agents(InferenceCharge, [agent_id]), "played_at")
    here = last.filter(table_id=table_id, hand_number=hand_number).values_list("played_at", "id").first()
    if here is None:
        return Neighbours()
    at, row = here
    older = last.filter(_past("played_at", at, row, "lt"))
    newer = last.filter(_past("played_at", at, row, "gt")).order_by("played_at", "id")
    return Neighbours(*(hands.values_list("table_id", "hand_number").first() for hands in (older, newer)))


def last_day(agent_ids: Sequence[str]) -> dict[str, AgentDay]:
    """Each agent's last 24 hours, in three queries; an agent without turns has zeros."""
    since = timezone.now() - DAY
    clamped, unknown = Q(change=ChoiceChange.CLAMP), Q(change=None, is_fallback=False)
    played = (
        InferenceCharge.objects.filter(agent_id__in=agent_ids, played_at__gt=since)
        .values_list("agent_id")
        .annotate(
            turns=Count("id"),
            fallbacks=Count("id", filter=Q(is_fallback=True)),
            spent=Sum("cost"),
            clamped=Count("id", filter=clamped),
            unknown=Count("id", filter=unknown),
            lost=Count("id", filter=MARKS["lost"]),
        )
        .order_by()
    )
    hand = Concat("table_id", Value(":"), "hand_number", output_field=CharField())
    kept = (
        AgentCallRecord.objects.filter(agent_id__in=agent_ids)
        .values_list("agent_id")
        .annotate(hands=Count(hand, distinct=True))
        .order_by()
    )
    ended = (
        HandResult.objects.filter(agent_id__in=agent_ids, ended_at__gt=since)
        .values_list("agent_id")
        .annotate(chips=Sum("net"), hands=Count("id"))
        .order_by()
    )
    days = dict.fromkeys(agent_ids, AgentDay())
    for agent_id, turns, fallbacks, spent, clamps, not_known, lost in played:
        days[agent_id] = AgentDay(turns, fallbacks, spent, clamped=clamps or (None if not_known else 0), lost=lost)
    for agent_id, hands in kept:
        days[agent_id] = replace(days[agent_id], kept_hands=hands)
    for agent_id, net, hands in ended:
        days[agent_id] = replace(days[agent_id], net=net, hands=hands)
    return days


def known_of_all(only: str) -> bool:
    """Whether every row of the ledger says if its turn is so (`only`, a key of ONLY): its oldest one tells whether it
    has rows of before there was a word for it."""
    if not (column := OF_NEWER_ROWS.get(only)):
        return True
    oldest = InferenceCharge.objects.order_by("played_at", "id").values_list(column, flat=True)[:1]
    return None not in oldest


def _of_agents(model: type[Model], agent_ids: Sequence[str] | None) -> QuerySet[Any]:
    rows = model._default_manager.order_by()
    return rows if agent_ids is None else rows.filter(agent_id__in=agent_ids)


def _last_of_each_hand(rows: QuerySet[Any], when: str) -> QuerySet[Any]:
    """Each hand by its latest row: an anti-join on the hand's own index, so that LIMIT stops the walk early."""
    later = rows.filter(
        _past(when, OuterRef(when), OuterRef("id"), "gt"),
        table_id=OuterRef("table_id"),
        hand_number=OuterRef("hand_number"),
    )
    return rows.filter(~Exists(later)).order_by(f"-{when}", "-id")


def _newest_of_each(rows: QuerySet[Any], agent_ids: Iterable[str], limit: int) -> QuerySet[Any]:
    """The same rows, with each agent's newest found by a walk of its own: asked for several agents at once, a database
    walks everybody's turns until it has met enough of theirs, which is far for agents that have not played for long."""
    walks = [rows.filter(agent_id=agent_id).values("pk")[:limit].query.sql_with_params() for agent_id in agent_ids]
    found = " UNION ALL ".join(f"SELECT * FROM ({walk}) AS walk" for walk, _ in walks)  # noqa: S608 - Django's
    return rows.filter(pk__in=RawSQL(found, [value for _, values in walks for value in values]))  # noqa: S611


def _cursor(at: datetime, row: int) -> str:
    return f"{(at - EPOCH) // timedelta(microseconds=1)}.{row}"


def _older_than(before: str, when: str) -> Q:
    if not (parts := CURSOR.fullmatch(before)):
        raise ValueError("This is no page of the list.")
    at = EPOCH + timedelta(microseconds=int(parts[1]))
    return _past(when, at, int(parts[2]), "lt")


def _past(when: str, at: datetime | OuterRef, row: int | OuterRef, way: str) -> Q:
    """Rows beyond this place of a list. What begins the walk of an index there is the first condition: an OR does
    not, and every row before the place would be read."""
    return Q(**{f"{when}__{way}e": at}) & (Q(**{f"{when}__{way}": at}) | Q(**{when: at, f"id__{way}": row}))


def _any_of(hands: list[HandId]) -> Q:
    wanted = Q(pk__in=[])
    for table_id, hand_number in hands:
        wanted |= Q(table_id=table_id, hand_number=hand_number)
    return wanted


def _net(rows: QuerySet[Any], hands: list[HandId]) -> dict[HandId, dict[str, int]]:
    """What these hands came to, by agent, as far as it is known."""
    found: dict[HandId, dict[str, int]] = defaultdict(dict)
    results = rows.filter(_any_of(hands)).order_by("agent_id")
    for table_id, hand_number, agent_id, net in results.values_list("table_id", "hand_number", "agent_id", "net"):
        found[table_id, hand_number][agent_id] = net
    return found


def _by_hand(rows: QuerySet[Any], hands: list[HandId]) -> dict[HandId, list[dict[str, Any]]]:
    """The rows of these hands in action order: facts alone, no content."""
    names = ["table_id", "hand_number", "action_index", "agent_id", "agent_version_id"]
    if rows.model is InferenceCharge:
        names += ["action", "change", "note", "is_fallback", "capture_outcome", "played_at"]
    found: dict[HandId, list[dict[str, Any]]] = defaultdict(list)
    for row in rows.filter(_any_of(hands)).order_by("action_index", "agent_id").values(*names):
        found[row["table_id"], row["hand_number"]].append(row)
    return found


def _recent(
    hand: HandId,
    at: datetime,
    charges: list[dict[str, Any]],
    records: list[dict[str, Any]],
    net: dict[str, int],
) -> RecentHand:
    return RecentHand(
        table_id=hand[0],
        hand_number=hand[1],
        turns=len(charges),
        fallbacks=sum(charge["is_fallback"] for charge in charges),
        kept=len(records),
        lost=sum(charge["capture_outcome"] in LOST for charge in charges),
        agent_ids=list(dict.fromkeys(row["agent_id"] for row in [*charges, *records])),
        actions=[charge["action"] for charge in charges],
        last_played_at=max((charge["played_at"] for charge in charges), default=at),
        agent_version_ids=list(
            dict.fromkeys(row["agent_version_id"] for row in [*charges, *records] if row["agent_version_id"])
        ),
        clamped=_clamped(charges),
        reconnected=_reconnected(charges),
        first=_first(charges),
        net=net,
    )


def _first(charges: list[dict[str, Any]]) -> dict[str, Place]:
    """`charges` in action order; the kinds are those of ONLY."""
    found: dict[str, Place] = {}
    for charge in charges:
        kinds = {
            "clamped": charge["change"] == ChoiceChange.CLAMP,
            "fallback": charge["is_fallback"],
            "lost": charge["capture_outcome"] in LOST,
            "reconnected": charge["note"] == TurnNote.RECONNECTED,
        }
        for kind in (kind for kind, has in kinds.items() if has):
            found.setdefault(kind, (charge["action_index"], charge["agent_id"]))
    return found


def _clamped(charges: list[dict[str, Any]]) -> int | None:
    """A row from before there was a word for it leaves open whether its turn was; a fallback was not."""
    count = sum(charge["change"] == ChoiceChange.CLAMP for charge in charges)
    all_known = charges and all(charge["change"] is not None or charge["is_fallback"] for charge in charges)
    return count if count or all_known else None


def _reconnected(charges: list[dict[str, Any]]) -> int | None:
    count = sum(charge["note"] == TurnNote.RECONNECTED for charge in charges)
    all_known = charges and all(charge["note"] is not None for charge in charges)
    return count if count or all_known else None
