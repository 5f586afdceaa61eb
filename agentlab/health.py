"""`/healthz`: whether this site can serve, for whatever watches it. Anybody may ask, and learns no secret."""

from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ImproperlyConfigured
from django.db import Error, connection
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.http import require_safe
from django_redis import get_redis_connection
from redis import RedisError

from agentlab.agents.models import CaptureOutcome, InferenceCharge
from agentlab.common.schema import is_current
from capture.sources import NOT_A_HAND, SourceError, hand_source

T = TypeVar("T")

SECONDS = 2.0  # a store that has not answered by then is down for whoever asks
TOO_LATE = "The hosted agent does not answer in time."

# Few threads on purpose: where a store hangs, later questions wait behind the first ones and are answered "down".
_askers = ThreadPoolExecutor(4, thread_name_prefix="healthz")


RECORDING_STOPS = (
    "The capture Redis does not answer: turns that are played now are counted and not recorded, and of earlier ones "
    "only kept hands and the ledger can be read. Everything else works."
)
NO_DATABASE = "The database does not answer: no page but this one works."
STILL_RECORDED = f"{NO_DATABASE} Turns that are being played are still recorded, and their ledger rows wait."
NO_DATABASE_NOR_REDIS = "Neither the database nor the capture Redis answers: no page but this one works."
MIGRATIONS = "migrations are missing"
NOT_THERE = "{why} Hands cannot be shown until that is mended; everything else works."


@dataclass(frozen=True)
class Health:
    """`capture_redis` is None where hands come from another host; `other_host` is None where they do not, else empty
    where it gives hands, and otherwise says in a sentence why not. `last_captured` is the newest turn that the ledger
    knows to be captured, None where there is none. `is_migrated` is False where a migration is known to be missing."""

    database: bool
    capture_redis: bool | None
    last_captured: datetime | None
    is_migrated: bool = True
    other_host: str | None = None

    @property
    def ok(self) -> bool:
        """Can this site serve? A buffer that may vanish, and a host that is another's, are told of and are no reason
        to send nobody here any more."""
        return self.database and self.is_migrated

    @property
    def reason(self) -> str:
        """What is wrong and what still works; empty where nothing is wrong."""
        if not self.database:
            return {True: STILL_RECORDED, False: NO_DATABASE_NOR_REDIS, None: NO_DATABASE}[self.capture_redis]
        if not self.is_migrated:
            return MIGRATIONS
        if self.other_host:
            return NOT_THERE.format(why=self.other_host)
        return RECORDING_STOPS if self.capture_redis is False else ""


@login_not_required
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 where this site can serve, 503 where it cannot; what else is wrong is named. The age is in seconds."""
    health = check()
    age = (timezone.now() - health.last_captured).total_seconds() if health.last_captured else None
    body = {
        "ok": health.ok,
        "database": _word(health.database),
        "captureRedis": _word(health.capture_redis),
        "lastCapturedTurnAge": None if age is None else round(max(0.0, age), 1),
    }
    if health.other_host is not None:
        body["hostedAgent"] = _word(not health.other_host)
    if health.reason:
        body["reason"] = health.reason
    return JsonResponse(body, status=200 if health.ok else 503)


def check() -> Health:
    """Asks all at once, for SECONDS at most."""
    elsewhere = bool(settings.HOSTED_AGENT_URL)
    database = _askers.submit(_ask_database)
    hands = _askers.submit(_ask_other_host) if elsewhere else _askers.submit(_ask_redis)
    asked: list[Future[Any]] = [database, hands]
    wait(asked, timeout=SECONDS)
    answered, last, is_migrated = _answer(database, (False, None, True))
    if elsewhere:
        return Health(answered, None, last, is_migrated, other_host=_answer(hands, TOO_LATE))
    return Health(answered, _answer(hands, False), last, is_migrated)


def _answer(future: Future[Any], otherwise: T) -> T:
    if future.done():
        answer: T = future.result()
        return answer
    future.cancel()
    return otherwise


def _ask_database() -> tuple[bool, datetime | None, bool]:
    try:
        if not is_current():  # what is asked next may not be there yet
            return True, None, False
        recorded = InferenceCharge.objects.filter(capture_outcome=CaptureOutcome.RECORDED)
        return True, recorded.order_by("-played_at", "-id").values_list("played_at", flat=True).first(), True
    except Error:
        return False, None, True
    finally:
        connection.close()


def _ask_redis() -> bool:
    try:
        return bool(get_redis_connection("capture").ping())
    except (RedisError, OSError, ImproperlyConfigured):
        return False


def _ask_other_host() -> str:
    """As the pages will ask it: whether it answers, and knows our key. Empty, or why it gives no hands."""
    try:
        hand_source().recent_hands(limit=1)
    except SourceError as error:
        return str(error)
    except ValueError:  # it speaks another language than the pages do
        return NOT_A_HAND
    return ""


def _word(up: bool | None) -> str:
    return "elsewhere" if up is None else "up" if up else "down"
