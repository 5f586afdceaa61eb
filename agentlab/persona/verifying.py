"""Verification from a page: in a thread of the web process, so that nobody's request waits for a long trace."""

import logging
import threading

from django.db import connection
from django.db.models import Q
from django.utils import timezone

from agentlab.common.faults import without_words
from agentlab.persona.models import STALE, StudyRun
from agentlab.persona.replaying import Moving, verify

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
    except Exception as error:
        log.error("study %d could not be verified: %s", number, without_words(error))
    finally:
        connection.close()
