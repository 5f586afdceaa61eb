"""Verification from a page: in a thread of the web process, so that nobody's request waits for a long trace."""

import logging
import threading
from datetime import timedelta

from django.db import connection
from django.db.models import Q
from django.utils import timezone

from agentlab.persona.models import StudyRun
from agentlab.persona.replaying import Moving, verify

STALE = timedelta(minutes=10)  # after which a verification whose process is gone may be begun again

log = logging.getLogger(__name__)


def start(run: StudyRun) -> threading.Thread | None:
    """Begin, unless one is under way. One who asks at the same moment gets None."""
    free = ~Q(replay=StudyRun.Replay.RUNNING) | Q(replayed_at__lt=timezone.now() - STALE) | Q(replayed_at=None)
    claimed = StudyRun.objects.filter(free, pk=run.pk).update(
        replay=StudyRun.Replay.RUNNING, replayed_at=timezone.now()
    )
    if not claimed:
        return None
    thread = threading.Thread(target=_verify, args=(run.pk,), daemon=True)
    thread.start()
    return thread


def _verify(number: int) -> None:
    try:
        verify(StudyRun.objects.get(pk=number))
    except Moving:
        pass  # its page says that it is not verified
    except Exception:
        log.exception("study %d could not be verified", number)
    finally:
        connection.close()
