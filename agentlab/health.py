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

T = TypeVar("T")

SECONDS = 2.0  # a store that has not answered by then is down for whoever asks

# Few threads on purpose: where a store hangs, later questions wait behind the first ones and are answered "down".
_askers = ThreadPoolExecutor(4, thread_name_prefix="healthz")


@dataclass(frozen=True)
class Health:
    """`capture_redis` is None where hands come from another host. `last_captured` is the newest turn that the ledger
    knows to be captured, None where there is none. `is_migrated` is False where a migration is known to be missing."""

    database: bool
    capture_redis: bool | None
    last_captured: datetime | None
    is_migrated: bool = True

    @property
    def ok(self) -> bool:
        return self.database and self.is_migrated and self.capture_redis is not False


@login_not_required
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 where what this site needs answers, 503 where it does not. The age is in seconds."""
    health = check()
    age = (timezone.now() - health.last_captured).total_seconds() if health.last_captured else None
    body = {
        "ok": health.ok,
        "database": _word(health.database),
        "captureRedis": _word(health.capture_redis),
        "lastCapturedTurnAge": None if age is None else round(max(0.0, age), 1),
    }
    if not health.is_migrated:
        body["reason"] = "migrations are missing"
    return JsonResponse(body, status=200 if health.ok else 503)


def check() -> Health:
    """Asks both stores at once, for SECONDS at most."""
    database, redis = _askers.submit(_ask_database), _askers.submit(_ask_redis)
    both: list[Future[Any]] = [database, redis]
    wait(both, timeout=SECONDS)
    answered, last, is_migrated = _answer(database, (False, None, True))
    return Health(answered, _answer(redis, False), last, is_migrated)


def _answer(future: Future[T], otherwise: T) -> T:
    if future.done():
        return future.result()
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


def _ask_redis() -> bool | None:
    if settings.HOSTED_AGENT_URL:
        return None
    try:
        return bool(get_redis_connection("capture").ping())
    except (RedisError, OSError, ImproperlyConfigured):
        return False


def _word(up: bool | None) -> str:
    return "elsewhere" if up is None else "up" if up else "down"
