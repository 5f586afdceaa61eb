"""What every template may use."""

from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest

from agentlab.common.access import is_operator

VERSION = "0.1.0"
THEMES = ("system", "light", "dark")


@dataclass(frozen=True)
class Link:
    label: str
    href: str
    current: str = ""  # the value of aria-current: "page" on the page itself, "true" on a page beneath it


def site(request: HttpRequest) -> dict[str, object]:
    """`theme` (from its cookie; the server sets it, so that no page flashes), `themes`, `version` and `navigation`;
    whether this is a `local` site, and whether its hands come from `elsewhere`."""
    theme = request.COOKIES.get("theme", "system")
    return {
        "theme": theme if theme in THEMES else "system",
        "themes": THEMES,
        "version": VERSION,
        "local": settings.LOCAL,
        "elsewhere": bool(settings.HOSTED_AGENT_URL),
        "navigation": navigation(request),
    }


def navigation(request: HttpRequest) -> list[Link]:
    """The rooms this user may enter, with a mark on the one they are in."""
    user = getattr(request, "user", AnonymousUser())
    rooms = [("agentlab", "/")]
    if is_operator(user):
        rooms.append(("Captured hands", "/agent-capture"))
    if user.is_authenticated:
        rooms += [("Agents", "/agents"), ("Factory", "/factory"), ("Personas", "/personas")]
    if is_operator(user):
        rooms.append(("Admin", "/admin/"))
    return [Link(label, href, _current(request.path, href)) for label, href in rooms]


def _current(path: str, href: str) -> str:
    if path == href:
        return "page"
    return "true" if href != "/" and path.startswith(href.rstrip("/") + "/") else ""
