"""The pages that belong to no room."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.decorators import method_decorator

from agentlab.common.signin import ThrottledLoginView


@login_not_required
def home(request: HttpRequest) -> HttpResponse:
    return render(request, "home.html")


@method_decorator(login_not_required, name="dispatch")
class SignIn(ThrottledLoginView):
    template_name = "login.html"
    redirect_authenticated_user = True


@login_not_required
def healthz(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"ok": True})
