"""Signing in, with a brake on guessing."""

from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.core.exceptions import ValidationError
from django.forms import BaseForm
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from agentlab.common.access import is_operator
from agentlab.common.throttle import FailureLimit

# A person who mistypes has ten tries; a program that guesses has 120 an hour for each account and address.
SIGN_IN_FAILURES = FailureLimit("sign-in", limit=10, seconds=300)
TOO_MANY = "too_many_failures"


class ThrottledAuthenticationForm(AuthenticationForm):
    """After too many failures of one user name from one address, not even the right password is tried."""

    def clean(self) -> dict[str, Any]:
        address = self.request.META.get("REMOTE_ADDR", "") if self.request else ""
        who = (str(self.cleaned_data.get("username")), address)
        if SIGN_IN_FAILURES.reached(*who):
            raise ValidationError("Too many failed attempts. Wait five minutes, then try again.", code=TOO_MANY)
        try:
            cleaned = super().clean()
        except ValidationError:
            SIGN_IN_FAILURES.failed(*who)
            raise
        SIGN_IN_FAILURES.forget(*who)
        return cleaned


class ThrottledLoginView(LoginView):
    """Django's log-in, answering 429 to whoever has guessed too often."""

    authentication_form = ThrottledAuthenticationForm

    def form_invalid(self, form: BaseForm) -> HttpResponse:
        return self.render_to_response(
            self.get_context_data(form=form), status=429 if form.has_error("__all__", TOO_MANY) else 200
        )


@login_not_required
def admin_sign_in(request: HttpRequest) -> HttpResponse:
    """Stands in front of Django admin's own log-in, so that there is one door and one brake."""
    if is_operator(request.user):
        return redirect("admin:index")
    if request.user.is_authenticated:
        raise Http404
    return redirect(f"{reverse('login')}?{request.GET.urlencode()}")
