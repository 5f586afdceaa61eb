"""The owner's pages that need no captured turn: making an agent, its versions, whispers to it.

Its hands are read in the room that records them (`capture/owner_views.py`).
"""

from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_GET, require_http_methods
from django_htmx.http import HttpResponseStopPolling

from agentlab.agents import hearing, services
from agentlab.agents.forms import AgentForm, WhisperForm, bound_or_initial, draft_from
from agentlab.agents.models import Agent
from agentlab.common.access import owned, visible
from agentlab.common.paging import numbered, page_number
from agentlab.common.text import plain

PAGE = 50  # versions or whispers


@require_http_methods(["GET", "HEAD", "POST"])
def new_agent(request: HttpRequest) -> HttpResponse:
    form = AgentForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            agent = services.create_agent(owner=_user(request), name=form.cleaned_data["name"])
        except services.Refused as refused:
            form.add_error("name", str(refused))
        else:
            return redirect("publish", agent.pk)
    return render(request, "agents/new.html", {"form": form})


@require_GET
def versions(request: HttpRequest, agent_id: str) -> HttpResponse:
    agent = get_object_or_404(visible(Agent.objects.select_related("owner"), request.user), pk=agent_id)
    published = agent.versions.order_by("-number")
    context = {"agent": agent, "tab": "versions", **_page(request, published), **_rights(request, agent)}
    return render(request, "agents/versions.html", context)


@require_GET
def version(request: HttpRequest, agent_id: str, version_id: str) -> HttpResponse:
    """What one version said, and how it differs from the one before."""
    agent = get_object_or_404(visible(Agent.objects.select_related("owner"), request.user), pk=agent_id)
    shown = get_object_or_404(agent.versions, pk=version_id)
    previous = agent.versions.filter(number__lt=shown.number).order_by("-number").first()
    context = {"agent": agent, "tab": "versions", "inside": True, "shown": shown, "previous": previous}
    context |= {"parts": services.parts(shown, previous), **_rights(request, agent)}
    return render(request, "agents/version.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def publish(request: HttpRequest, agent_id: str) -> HttpResponse:
    agent = get_object_or_404(owned(Agent.objects.all(), request.user), pk=agent_id)
    draft = services.draft_of(services.newest_version(agent))
    form, skills = bound_or_initial(draft, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid() and skills.is_valid():
        try:
            made = services.publish(agent, draft_from(form, skills))
        except services.Refused as refused:
            form.add_error(None, str(refused))
        else:
            return redirect("version", agent.pk, made.pk)
    context = {"agent": agent, "tab": "versions", "inside": True, "form": form, "skills": skills, "is_owner": True}
    context["failed"] = request.method == "POST"
    return render(request, "agents/publish.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def whispers(request: HttpRequest, agent_id: str) -> HttpResponse:
    """What was whispered to the agent, newest first, what became of it, and the next whisper."""
    scope = owned if request.method == "POST" else visible
    agent = get_object_or_404(scope(Agent.objects.select_related("owner"), request.user), pk=agent_id)
    form = WhisperForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        services.whisper(agent, author=_user(request), text=form.cleaned_data["text"])
        return HttpResponseRedirect(request.path)
    page = _page(request, hearing.newest_first(agent))
    rows, seated = hearing.told(agent, page["rows"]), hearing.is_seated(agent)
    waiting = any(told.state == "waiting" for told in rows)
    context = {"agent": agent, "tab": "whispers", "form": form, **page, **_rights(request, agent)}
    unpublished = not seated and not agent.versions.exists()
    context |= {"rows": rows, "seated": seated, "waiting": waiting, "unpublished": unpublished}
    if not request.htmx:  # type: ignore[attr-defined]
        response = render(request, "agents/whispers.html", context)
    else:
        response = render(request, "agents/_whispers.html", context)
        response = response if waiting else HttpResponseStopPolling(response.content)
    patch_vary_headers(response, ["HX-Request"])
    return response


@require_http_methods(["GET", "HEAD", "POST"])
def withdraw(request: HttpRequest, agent_id: str, whisper_id: int) -> HttpResponse:
    """Asks once, then takes the whisper out of what the agent will know."""
    agent = get_object_or_404(owned(Agent.objects.all(), request.user), pk=agent_id)
    whisper = get_object_or_404(hearing.newest_first(agent), pk=whisper_id)
    if request.method == "POST":
        if services.withdraw(whisper, actor=_user(request)):
            messages.success(request, f"Withdrawn: {plain(agent.name)} is not told it again.")
        else:
            messages.warning(request, "It had been withdrawn already.")
        return redirect("whispers", agent.pk)
    (told,) = hearing.told(agent, [whisper])
    context = {"agent": agent, "tab": "whispers", "inside": True, "is_owner": True, "told": told}
    return render(request, "agents/withdraw.html", context)


def _rights(request: HttpRequest, agent: Agent) -> dict[str, bool]:
    return {"is_owner": agent.owner_id == request.user.pk}


def _user(request: HttpRequest) -> User:
    """Who asks; LoginRequiredMiddleware lets nobody else in."""
    return cast("User", request.user)


def _page(request: HttpRequest, rows: QuerySet[Any]) -> dict[str, Any]:
    pages = max(1, -(-rows.count() // PAGE))
    number = page_number(request.GET.get("page"), pages)
    return {"rows": rows[(number - 1) * PAGE : number * PAGE], "pager": numbered(request.path, number, pages)}
