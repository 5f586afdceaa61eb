"""The one way into `/internal/…`: another process with the service key in `x-service-key`. No session opens it."""

import hmac
from typing import Any

from django.conf import settings
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from agentlab.common.throttle import FailureLimit

HEADER = "x-service-key"
# Guessing a key of 48 random bytes is hopeless at any rate; the brake keeps guessers from costing us anything. The
# right key is let through regardless, or whoever shares an address with the service could shut it out.
WRONG_KEYS = FailureLimit("service-key", limit=20, seconds=60)


class Service:
    """Who asks when the key is right. Not a user: it owns nothing and signs in nowhere."""

    is_authenticated = True


class ServiceKey(BaseAuthentication):
    """Compares bytes in constant time; where no key is configured, nothing opens."""

    def authenticate(self, request: Request) -> tuple[Service, None] | None:
        given = request.META.get("HTTP_X_SERVICE_KEY")
        if given is None:
            return None
        key = settings.AGENT_CAPTURE_SERVICE_KEY.encode()
        # WSGI hands a header's bytes over as Latin-1 text.
        if key and hmac.compare_digest(given.encode("latin-1", "replace"), key):
            return Service(), None
        address = request.META.get("REMOTE_ADDR", "")
        if WRONG_KEYS.reached(address):
            raise Throttled(WRONG_KEYS.seconds, detail="Too many wrong service keys from this address.")
        WRONG_KEYS.failed(address)
        raise AuthenticationFailed("The service key is not right.")

    def authenticate_header(self, request: Request) -> str:
        return f'ServiceKey header="{HEADER}"'


class IsService(BasePermission):
    message = f"This needs the service key in {HEADER}."

    def has_permission(self, request: Request, view: APIView) -> bool:
        return isinstance(request.user, Service)


class ServiceKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the schema says it."""

    target_class = ServiceKey
    name = "serviceKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "apiKey", "in": "header", "name": HEADER}
