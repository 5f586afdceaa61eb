"""A session file from the browser becomes a run of whoever brought it."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_POST

from agentlab.common.numbers import counted
from agentlab.common.text import plain
from factory.importing import UPLOAD_LIMIT, FileReport, ImportRefused, import_upload

FORM_BYTES = 64 * 1024  # what a form needs around its file
HEARD_OUT = 10 * UPLOAD_LIMIT  # a browser that may not finish sending sees no answer but a broken connection
CHUNK = 256 * 1024


@csrf_exempt
@require_POST
def upload(request: HttpRequest) -> HttpResponse:
    """Refuse what is too large before any of it is kept: checking the form's token already stores the whole body."""
    length = request.META.get("CONTENT_LENGTH") or ""
    if not length.isdigit() or int(length) > UPLOAD_LIMIT + FORM_BYTES:
        if length.isdigit() and int(length) <= HEARD_OUT:
            while request.read(CHUNK):
                pass
        limit = f"{UPLOAD_LIMIT // 1024**2} MiB"
        return _refused(request, f"A file may have {limit}; manage.py factory import takes larger ones.")
    return _upload(request)


@csrf_protect
def _upload(request: HttpRequest) -> HttpResponse:
    uploaded = request.FILES.get("file")
    if uploaded is None or uploaded.file is None:
        return _refused(request, "Choose a file first.")
    name = uploaded.name or "a file"
    try:
        # The door is closed to whoever is not signed in, so there is an owner.
        report = import_upload(uploaded.file, name, owner_id=request.user.pk)  # type: ignore[arg-type]
    except ImportRefused as refusal:
        return _refused(request, f"{name}: {refusal}")
    messages.success(request, plain(f"{name}: {_counted(report)}."))
    return redirect("factory-run", report.runs[0]) if len(report.runs) == 1 else redirect("factory")


def _refused(request: HttpRequest, sentence: str) -> HttpResponse:
    messages.error(request, plain(sentence))
    return redirect(f"{reverse('factory')}?read")


def _counted(report: FileReport) -> str:
    if report.brought_nothing:
        were = "was" if report.unchanged == 1 else "were all"
        return f"nothing new: {report.format}, whose {counted(report.unchanged, 'attempt')} {were} here already"
    return f"{report.format}, {report.records_in_words}"
