"""What every page's test asks of a page."""

import html5lib
from django.http import HttpResponse


def assert_valid_html(response: HttpResponse) -> None:
    """The answer parses without one error; a fragment (no doctype) is parsed as the content of a body."""
    text = response.content.decode()
    if not text.lstrip().lower().startswith("<!doctype"):
        text = f"<!doctype html><html lang='en'><head><title>x</title></head><body>{text}</body></html>"
    parser = html5lib.HTMLParser()
    parser.parse(text)
    lines = text.split("\n")
    wrong = [f"line {line}: {code} {data}: {lines[line - 1][:300]}" for (line, _), code, data in parser.errors]
    assert not wrong, "\n".join(wrong)


def assert_no_inline_code(response: HttpResponse) -> None:
    """Nothing that the policy would refuse: no style or handler attribute, no script with text in it."""
    from html.parser import HTMLParser

    found: list[str] = []

    class Look(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            names = {name for name, _ in attrs}
            bad = {name for name in names if name == "style" or name.startswith(("on", "hx-on"))}
            if bad or (tag == "script" and "src" not in names) or tag == "style":
                found.append(f"<{tag} {' '.join(sorted(bad))}>")

    Look().feed(response.content.decode())
    assert not found, found
