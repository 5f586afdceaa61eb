"""`{% load owner %}`: what an owner's page says of a turn beside what an operator's says."""

from django import template

from capture.answers import answers
from capture.presenting import TurnPanel

register = template.Library()


@register.filter
def owner_answers(panel: TurnPanel) -> list[str]:
    return answers(panel.view.turn, panel.callouts)
