"""`{% load recorded %}`: a recorded value, whatever its shape, as HTML."""

from django import template

from capture.recorded import recorded_html

register = template.Library()
register.filter("recorded", recorded_html)
