"""One shape for every error a program gets: `{"error": {"code": "not_found", "message": "…"}}`, ASCII-escaped."""

from http import HTTPStatus

from django.http import HttpRequest, JsonResponse

MACHINE_PATHS = ("/api/", "/internal/")


def error(status: int, message: str, code: str = "") -> JsonResponse:
    """An error answer. `code` is the status' own name in snake_case where none is given; `message` is for people
    and quotes nothing that was sent."""
    name = code or HTTPStatus(status).phrase.lower().replace(" ", "_").replace("'", "")
    return JsonResponse({"error": {"code": name, "message": message}}, status=status)


def for_a_program(request: HttpRequest) -> bool:
    """Does this path answer programs? Then its errors are JSON too."""
    return request.path.startswith(MACHINE_PATHS)
