"""The internal API: one agent's turns of a hand, everybody's, lists of hands, and pins, for other processes.

Every answer is JSON in ASCII, every error has the one shape of `agentlab.common.errors`. The browser's proxy
(`proxy.py`) is the same operations behind another door.
"""

import json
from collections.abc import Callable
from typing import Any, cast

import msgspec
from django.core.exceptions import PermissionDenied
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpResponse
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularJSONAPIView
from rest_framework import exceptions
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.request import Request
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from agentlab.common.access import User
from agentlab.common.errors import error
from capture import wire
from capture.api_input import AgentHandQuery, AgentsQuery, HandQuery, HandsQuery, SmallJSONParser, query_of
from capture.api_schema import answers
from capture.opening import audit_opened
from capture.reading import Hand
from capture.service_key import IsService, Service, ServiceKey
from capture.sources import HandSource, LocalHands, SourceError

Asked = dict[str, Any]


class OnlyJson(BaseContentNegotiation):
    """There is one representation, whatever the client says it accepts."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return next((parser for parser in parsers if request.content_type.startswith(parser.media_type)), None)

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


class Operation(APIView):
    """One question to a source of hands, behind the service key."""

    authentication_classes: Any = [ServiceKey]
    permission_classes: Any = [IsService]
    parser_classes = [SmallJSONParser]
    content_negotiation_class = OnlyJson
    metadata_class = None  # OPTIONS says nothing
    source: Callable[[], HandSource] = LocalHands

    def get_exception_handler(self) -> Callable[..., HttpResponse | None]:
        return refused

    def actor(self) -> User | None:
        """The person who asks; None where it is the service."""
        asker: object = self.request.user
        return None if isinstance(asker, Service) else cast("User", asker)

    def opened(self, hand: Hand) -> HttpResponse:
        """The hand; where a person opened it, the audit knows whose turns they saw."""
        if actor := self.actor():
            audit_opened(actor, hand)
        return said(wire.hand_to_json(hand))

    def asked(self, kind: type[Serializer[Any]], data: Any) -> Asked:
        question = kind(data=data)
        question.is_valid(raise_exception=True)
        return cast("Asked", question.validated_data)


def said(answer: msgspec.Struct) -> HttpResponse:
    """The answer in ASCII. Most of it is written that way already; the ids of odd agents may not be."""
    body = msgspec.json.encode(answer)
    body = body if body.isascii() else json.dumps(json.loads(body)).encode()
    return HttpResponse(body, content_type="application/json")


def refused(failure: Exception, context: Any) -> HttpResponse | None:
    """A failure as an answer; None where it is a fault of ours."""
    match failure:
        case exceptions.ValidationError():
            return error(400, _reason(failure.detail))
        case exceptions.APIException():
            answer = error(failure.status_code, str(failure.detail))
            if challenge := getattr(failure, "auth_header", None):
                answer.headers["WWW-Authenticate"] = challenge
            if wait := getattr(failure, "wait", None):
                answer.headers["Retry-After"] = str(int(wait))
            return answer
        case Http404():
            return error(404, "There is nothing here.")
        case PermissionDenied():
            return error(403, "This is not allowed.")
        case SourceError():
            return error(failure.status, str(failure))
        case OperationalError() | InterfaceError():
            return error(503, "The database does not answer.")
    return None


def _reason(detail: Any, name: str = "") -> str:
    """The first reason of DRF's tree of reasons, with the field that it is about."""
    if isinstance(detail, dict):
        field, inner = next(iter(detail.items()))
        return _reason(inner, name if field == "non_field_errors" else str(name or field))
    if isinstance(detail, list):
        return _reason(detail[0], name)
    return f"{name}: {detail}" if name else str(detail)


class HandOperation(Operation):
    """One agent's turns of a hand."""

    @extend_schema(operation_id="hand", parameters=[AgentHandQuery], responses=answers(wire.HandJson))
    def get(self, request: Request) -> HttpResponse:
        asked = self.asked(AgentHandQuery, query_of(request))
        found = self.source().read_hand(**asked)
        return self.opened(found)


class HandAllOperation(Operation):
    """Every agent's turns of a hand: the operator's view."""

    @extend_schema(operation_id="hand-all", parameters=[HandQuery], responses=answers(wire.HandJson))
    def get(self, request: Request) -> HttpResponse:
        asked = self.asked(HandQuery, query_of(request))
        found = self.source().read_hand_all(**asked)
        return self.opened(found)


class HandsOperation(Operation):
    """The ledger's hands, newest first, or the kept ones, last kept first."""

    @extend_schema(operation_id="hands", parameters=[HandsQuery], responses=answers(wire.RecentHandsJson))
    def get(self, request: Request) -> HttpResponse:
        asked = self.asked(HandsQuery, query_of(request, lists=("agentId",)))
        return said(wire.recent_to_json(self.source().recent_hands(**asked)))


class NeighboursOperation(Operation):
    """The hands that one agent played before and after this one, as the list of its hands has them."""

    @extend_schema(operation_id="neighbours", parameters=[AgentHandQuery], responses=answers(wire.NeighboursJson))
    def get(self, request: Request) -> HttpResponse:
        asked = self.asked(AgentHandQuery, query_of(request))
        return said(wire.neighbours_to_json(self.source().neighbours(**asked)))


class NeighboursAllOperation(Operation):
    """The hands before and after one at its table, whoever played them."""

    @extend_schema(operation_id="neighbours-all", parameters=[HandQuery], responses=answers(wire.NeighboursJson))
    def get(self, request: Request) -> HttpResponse:
        asked = self.asked(HandQuery, query_of(request))
        return said(wire.neighbours_to_json(self.source().neighbours_all(**asked)))


class TodayOperation(Operation):
    """Each agent's turns, fallbacks and cost in the last 24 hours, and its kept hands."""

    @extend_schema(operation_id="today", parameters=[AgentsQuery], responses=answers(wire.AgentDaysJson))
    def get(self, request: Request) -> HttpResponse:
        asked = self.asked(AgentsQuery, query_of(request, lists=("agentId",)))
        return said(wire.days_to_json(self.source().last_day(asked["agent_ids"])))


class PromoteOperation(Operation):
    """Keeps what the buffer has of one agent's turns of a hand. Doing it again keeps what is new, and nothing twice."""

    @extend_schema(operation_id="promote", request=AgentHandQuery, responses=answers(wire.PinJson, body=True))
    def post(self, request: Request) -> HttpResponse:
        asked = self.asked(AgentHandQuery, request.data)
        return said(wire.pin_to_json(self.source().pin(**asked, actor=self.actor())))


class UnpinOperation(Operation):
    """Lets go of one agent's kept turns of a hand, and says how many there were."""

    @extend_schema(operation_id="unpin", request=AgentHandQuery, responses=answers(wire.UnpinJson, body=True))
    def post(self, request: Request) -> HttpResponse:
        asked = self.asked(AgentHandQuery, request.data)
        return said(wire.UnpinJson(self.source().unpin(**asked, actor=self.actor())))


class Schema(SpectacularJSONAPIView):
    """The OpenAPI schema of all this, behind the same key."""

    authentication_classes = [ServiceKey]
    permission_classes = [IsService]

    def get_exception_handler(self) -> Callable[..., HttpResponse | None]:
        return refused
