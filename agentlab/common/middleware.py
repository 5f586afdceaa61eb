"""Headers that every answer carries unless its view says otherwise."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse


class PrivateByDefault:
    """Pages hold model text and other people's cards: no cache keeps them, and a view opts out by setting its own."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response
