"""`{% load persona %}`: how a stance, a share, a distance and a profile's field are written."""

from django import template

from agentlab.persona.showing import distance, measured, signed

register = template.Library()
register.filter("plus_minus", signed)  # "signed" is what the site calls chips that were won or lost
register.filter("distance", distance)
register.filter("measured", measured)


@register.filter
def strength(stance: float) -> float:
    """How strongly it argues, either way."""
    return abs(stance)


@register.filter
def percent(share: float) -> str:
    """`41.25 %`."""
    return f"{100 * share:.2f} %"


@register.filter
def spelled(value: object) -> str:
    """A profile's field as text: a list's items apart by semicolons."""
    return "; ".join(value) if isinstance(value, list) else str(value)
