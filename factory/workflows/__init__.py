"""The workflows by name."""

from factory.workflows.ask import ASK
from factory.workflows.build import BUILD

WORKFLOWS = {workflow.name: workflow for workflow in (ASK, BUILD)}
