"""The browser's way to the API: the same operations under our own origin, for operators who are signed in.

The service key is added here, on the server, where the hands are another host's. Writing needs the CSRF token.
"""

from typing import Any

from django.http import Http404
from rest_framework.authentication import SessionAuthentication
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from agentlab.common.access import is_operator
from capture.api import Operation
from capture.sources import hand_source


class IsOperator(BasePermission):
    """To any other signed-in user it is not there."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        if request.user.is_authenticated and not is_operator(request.user):
            raise Http404
        return is_operator(request.user)


def proxied(operation: type[Operation]) -> Any:
    """The operation, behind the operators' door, wherever the hands are."""
    return operation.as_view(
        authentication_classes=[SessionAuthentication],
        permission_classes=[IsOperator],
        source=hand_source,
        schema=None,
    )
