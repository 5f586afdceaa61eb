"""The pages that belong to no room."""

import sys
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.decorators import method_decorator
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST
from django_htmx.http import HttpResponseClientRefresh

from agentlab.common.context import THEMES
from agentlab.common.errors import error, for_a_program
from agentlab.common.schema import why_unready
from agentlab.common.signin import ThrottledLoginView

ONE_YEAR = 365 * 24 * 3600


@method_decorator(login_not_required, name="dispatch")
class SignIn(ThrottledLoginView):
    template_name = "login.html"
    redirect_authenticated_user = True

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if getattr(request, "htmx", False):
            # A part was asked for by somebody who is signed in no more: the whole page must go to the form.
            return HttpResponseClientRefresh()
        return super().get(request, *args, **kwargs)


@login_not_required
@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    """Remember the colours in a cookie, so that the server draws every page right from its first byte."""
    theme = request.POST.get("theme", "")
    if theme not in THEMES:
        return HttpResponseBadRequest("The theme is system, light or dark.", content_type="text/plain")
    wanted = request.POST.get("next", "/")
    safe = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    response = redirect(wanted if safe else "/")
    response.set_cookie("theme", theme, max_age=ONE_YEAR, samesite="Lax", secure=request.is_secure(), httponly=True)
    return response


def _refused(request: HttpRequest, status: int, message: str) -> HttpResponse:
    if for_a_program(request):
        return error(status, message)
    return render(request, f"{status}.html", status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _refused(request, 400, "This request cannot be read.")


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _refused(request, 403, "This is not allowed.")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return _refused(request, 403, "The form's token is missing or old: reload the page and send it again.")


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _refused(request, 404, "There is nothing here.")


def broken(request: HttpRequest) -> HttpResponse:
    """Rendered without the request: what broke may be what the request's own context asks for."""
    if why := why_unready(sys.exception()):
        if for_a_program(request):
            return error(503, why)
        return HttpResponse(render_to_string("503.html", {"why": why, "local": settings.LOCAL}), status=503)
    if for_a_program(request):
        return error(500, "Something broke.")
    return HttpResponse(render_to_string("500.html"), status=500)
