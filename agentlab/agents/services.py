"""What an owner does with an agent: makes it, publishes versions of it, whispers to it and takes it back."""

import difflib
from dataclasses import dataclass, fields
from typing import Literal

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.text import slugify

from agentlab.agents.base_prompt import BASE_PROMPT
from agentlab.agents.models import Agent, AgentVersion, Whisper
from agentlab.common import audit
from agentlab.common.models import Deed

RESERVED = "new"  # an agent of this id would stand where the page for a new one is


class Refused(Exception):
    """Says in one sentence why nothing was done."""


@dataclass(frozen=True)
class Draft:
    """What a version would say. `skills` are {"name", "text"} in the order of the prompt."""

    base_prompt: str
    strategy: str
    skills: list[dict[str, str]]
    model: str


@dataclass(frozen=True)
class DiffLine:
    kind: Literal["same", "added", "removed", "gap"]
    text: str


@dataclass(frozen=True)
class Part:
    """One part of a version's prompt and how it differs from the version before; no lines where it does not.

    `change` is "" where it says the same, and for a first version. A part that only one of the two has is new or
    removed, not changed: nothing of it was replaced.
    """

    name: str
    text: str
    diff: list[DiffLine]
    change: Literal["", "new", "removed", "changed"] = ""


def _refuse_elsewhere() -> None:
    """Where the hands of another host are shown, an id is what gives an owner their hands: nobody may take one."""
    if settings.HOSTED_AGENT_URL:
        raise Refused("Agents are made and published on the host where they play; this one shows its hands.")


def create_agent(*, owner: User, name: str) -> Agent:
    """A new agent. Its id is made of its name, numbered where the name is taken: two owners may both have a Rocky.
    Raises Refused."""
    _refuse_elsewhere()
    stem = slugify(name)[:50] or "agent"
    for number in range(2 if stem == RESERVED else 1, 1000):
        try:
            with transaction.atomic():
                return Agent.objects.create(id=stem if number == 1 else f"{stem}-{number}", name=name, owner=owner)
        except IntegrityError:
            continue
    raise Refused("Too many agents have this name; choose another.")


def newest_version(agent: Agent) -> AgentVersion | None:
    return agent.versions.order_by("-number").first()


def draft_of(version: AgentVersion | None) -> Draft:
    """What the form begins with: the newest version, or the base prompt alone."""
    if version is None:
        return Draft(BASE_PROMPT, "", [], "house")
    return Draft(version.base_prompt, version.strategy, version.skills, version.model)


def agents_called(words: str) -> list[str]:
    """The ids of the agents whose id or name has these words in it."""
    found = Agent.objects.filter(Q(id__icontains=words) | Q(name__icontains=words))
    return list(found.order_by().values_list("id", flat=True))


@transaction.atomic
def publish(agent: Agent, draft: Draft) -> AgentVersion:
    """The agent's next version, seated from the next hand on. Raises Refused where it would say what the last
    one says, and where it would never play."""
    _refuse_elsewhere()
    Agent.objects.select_for_update().get(pk=agent.pk)  # two publishers at once get two numbers
    last = newest_version(agent)
    if last is not None and draft_of(last) == draft:
        raise Refused(f"Nothing differs from v{last.number}, so there is nothing to publish.")
    number = last.number + 1 if last else 1
    values = {field.name: getattr(draft, field.name) for field in fields(Draft)}
    return AgentVersion.objects.create(id=f"{agent.pk}-v{number}", agent=agent, number=number, **values)


@transaction.atomic
def whisper(agent: Agent, *, author: User, text: str) -> Whisper:
    """A message that the agent hears from its next turn on."""
    said = Whisper.objects.create(agent=agent, author=author, text=text)
    audit.record(author, Deed.WHISPERED, [agent.pk], detail=f"{len(text)} characters")
    return said


@transaction.atomic
def withdraw(whisper: Whisper, *, actor: User) -> bool:
    """No turn that begins from now on hears it; what earlier turns knew stays as it was. False where it was withdrawn
    already."""
    now = timezone.now()
    if not Whisper.objects.filter(pk=whisper.pk, withdrawn_at=None).update(withdrawn_at=now):
        return False
    whisper.withdrawn_at = now
    audit.record(actor, Deed.WITHDREW, [whisper.agent_id], detail=f"{len(whisper.text)} characters")
    return True


def parts(version: AgentVersion, previous: AgentVersion | None) -> list[Part]:
    """The version's parts in the order of the prompt, each with its difference to the previous version; parts that
    only the previous one had come last, all removed."""
    if previous is None:
        return [Part(name, text, []) for name, text in _texts(version).items()]
    new, old = _texts(version), _texts(previous)
    return [_part(name, old.get(name), new.get(name)) for name in new | old]


def _part(name: str, old: str | None, new: str | None) -> Part:
    diff = _diff(old or "", new or "")
    if old is None:
        return Part(name, new or "", diff, "new")
    if new is None:
        return Part(name, "", diff, "removed")
    return Part(name, new, diff, "changed" if diff else "")


def _texts(version: AgentVersion) -> dict[str, str]:
    texts = {"Model": version.model, "Base prompt": version.base_prompt, "Strategy": version.strategy}
    for skill in version.skills:
        name = f"Skill: {skill.get('name', '')}"
        texts[name] = texts[name] + "\n" + skill.get("text", "") if name in texts else skill.get("text", "")
    return texts


def _diff(old: str, new: str) -> list[DiffLine]:
    if old == new:
        return []
    # Of nothing there are no lines: "".split("\n") has one, which would be shown as taken out or put in.
    lines = difflib.unified_diff(old.split("\n") if old else [], new.split("\n") if new else [], lineterm="")
    return [_line(line) for line in list(lines)[3:]]  # after the names of two files and where the first piece begins


def _line(line: str) -> DiffLine:
    kinds: dict[str, Literal["same", "added", "removed", "gap"]] = {"+": "added", "-": "removed", "@": "gap"}
    kind = kinds.get(line[:1], "same")
    return DiffLine(kind, "" if kind == "gap" else line[1:])
