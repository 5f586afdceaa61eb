"""What every template may use."""

from django.http import HttpRequest

VERSION = "0.1.0"
THEMES = ("system", "light", "dark")


def site(request: HttpRequest) -> dict[str, object]:
    """`theme` (from its cookie; the server sets it, so that no page flashes) and `version`."""
    theme = request.COOKIES.get("theme", "system")
    return {"theme": theme if theme in THEMES else "system", "version": VERSION}
