"""The API's answers in its OpenAPI schema, taken from the very structs that are sent."""

from typing import Any

import msgspec
from drf_spectacular.utils import OpenApiResponse

from capture import wire

_REFERENCE = "#/components/schemas/{name}"
_SAID = (
    *(wire.HandJson, wire.RecentHandsJson, wire.NeighboursJson, wire.AgentDaysJson),
    *(wire.PinJson, wire.UnpinJson),
)
_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        }
    },
}
_REFUSALS = {
    400: "The question is not one that there could be an answer to.",
    401: "No service key, or a wrong one.",
    429: "Too many wrong service keys from this address.",
    503: "A store does not answer.",
}


def answers(struct: type[msgspec.Struct], *, body: bool = False) -> dict[int, Any]:
    """What an operation may answer. `body`: it takes one, which can be too large or of another kind."""
    refusals = _REFUSALS | ({413: "The body is too large.", 415: "The body is not JSON."} if body else {})
    refused = {
        code: OpenApiResponse({"$ref": _REFERENCE.format(name="Error")}, description=words)
        for code, words in refusals.items()
    }
    return {200: {"$ref": _REFERENCE.format(name=struct.__name__)}, **refused}


def add_answers(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """drf-spectacular's last step: the structs as components."""
    components = msgspec.json.schema_components(_SAID, ref_template=_REFERENCE)[1]
    schemas = result.setdefault("components", {}).setdefault("schemas", {})
    schemas |= components | {"Error": _ERROR}
    return result
