"""What the API reads from a query or a body. Strict: what is not exactly an id or a number is refused, not guessed."""

import re
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import JSONParser
from rest_framework.request import Request

from capture.reading import LARGEST_NUMBER, LONGEST_ID
from capture.recent import CURSOR, MOST_HANDS, ONLY

LARGEST_BODY = 16 * 1024  # bytes; a promotion takes 600 at most


class TooLarge(APIException):
    status_code = 413
    default_code = "content_too_large"
    default_detail = "The body is too large."


class SmallJSONParser(JSONParser):
    """DRF's parser reads whatever comes, and a body nested deep enough takes the stack with it."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        if int(parser_context["request"].META.get("CONTENT_LENGTH") or 0) > LARGEST_BODY:
            raise TooLarge
        try:
            return super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise ParseError("The body is nested too deep.") from None


class WholeNumber(serializers.IntegerField):
    """A JSON integer, or its ASCII digits in a query; nothing that merely converts to one."""

    def __init__(self, least: int = 0, most: int = LARGEST_NUMBER, **kwargs: Any) -> None:
        super().__init__(min_value=least, max_value=most, **kwargs)

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, str) and re.fullmatch(r"-?[0-9]{1,19}", data):
            data = int(data)
        if isinstance(data, float) and data.is_integer():  # to JSON 7.0 is the integer 7
            data = int(data)
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return data


class Flag(serializers.BooleanField):
    """`true` or `false`."""

    def to_internal_value(self, data: Any) -> bool:
        if data not in ("true", "false"):
            self.fail("invalid")
        return bool(data == "true")


@extend_schema_field({"type": "string", "minLength": 1, "maxLength": LONGEST_ID, "pattern": r"^[^\x00]+$"})
class Id(serializers.CharField):
    """Text of 1 to 200 characters, as it is."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=LONGEST_ID, trim_whitespace=False, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class HandQuery(serializers.Serializer[Any]):
    tableId = Id(source="table_id", help_text="Which table.")
    handNumber = WholeNumber(source="hand_number", help_text="Which hand of that table.")


class AgentHandQuery(HandQuery):
    agentId = Id(source="agent_id", help_text="Whose turns. Required: there is no default scope.")


class HandsQuery(serializers.Serializer[Any]):
    before = serializers.RegexField(
        rf"^{CURSOR.pattern}\Z",
        required=False,
        help_text="`nextBefore` of the page before.",
        error_messages={"invalid": "This is no page of the list."},
    )
    limit = WholeNumber(1, MOST_HANDS, required=False, default=25, help_text="How many hands.")
    kept = Flag(required=False, default=False, help_text="Kept hands alone.")
    only = serializers.ChoiceField(
        list(ONLY),
        required=False,
        help_text="Hands with such a turn alone, by their last one; not together with `kept`.",
        error_messages={"invalid_choice": f"It is one of {', '.join(ONLY)}."},
    )
    agentId = serializers.ListField(
        child=Id(), source="agent_ids", required=False, max_length=MOST_HANDS, help_text="Turns of these agents alone."
    )

    def validate(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked.get("only") and asked["kept"]:
            raise serializers.ValidationError({"only": "Kept rows do not say."})
        return asked


class AgentsQuery(serializers.Serializer[Any]):
    agentId = serializers.ListField(
        child=Id(), source="agent_ids", min_length=1, max_length=MOST_HANDS, help_text="Whose day."
    )


def query_of(request: Request, *, lists: tuple[str, ...] = ()) -> dict[str, Any]:
    """The query's values by name, those in `lists` as lists. A scope given twice is refused, not chosen from."""
    query = request.query_params
    for name, values in query.lists():
        if name not in lists and len(values) > 1:
            raise serializers.ValidationError({"query": "A name is given twice."})
    return {name: values if name in lists else values[0] for name, values in query.lists()}
