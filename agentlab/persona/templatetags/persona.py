"""`{% load persona %}`: how a stance and a profile's field are written."""

from django import template

from agentlab.persona.showing import signed

register = template.Library()
register.filter("signed", signed)


@register.filter
def spelled(value: object) -> str:
    """A profile's field as text: a list's items apart by semicolons."""
    return "; ".join(value) if isinstance(value, list) else str(value)
