"""The people and agents of a local site: one operator, two owners, and the house agents that are theirs."""

import secrets
from collections.abc import Sequence
from typing import Protocol

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User

from agentlab.agents.models import Agent, AgentVersion
from agentlab.agents.services import Draft, newest_version, publish

OPERATOR = "operator"
OWNERS = ("ada", "ben")
HOUSE_OWNER = "house"  # of the house's agents where real people have accounts; nobody can sign in as it


class Resident(Protocol):
    """A house agent as its roster writes it down."""

    @property
    def slug(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def strategy(self) -> str: ...
    @property
    def skill_sections(self) -> list[dict[str, str]]: ...


def ensure_people(*, reset: bool = False) -> dict[str, str | None]:
    """The demo users' names and new passwords, or None for those whose password is as before.

    A password is generated where there is none yet, or for everybody where `reset` is set; only its hash is kept.
    """
    return {name: _ensure_password(_person(name), reset) for name in (OPERATOR, *OWNERS)}


def ensure_house(
    residents: Sequence[Resident], *, base_prompt: str, model: str = "house", owned_by: Sequence[str] = OWNERS
) -> list[AgentVersion]:
    """The residents as agents, shared out between the owners in turn; the newest version of each.

    A resident that has published anything is left as it is: an owner's own words stay, and so does another owner.
    """
    owners = [_person(name) for name in owned_by]
    versions = []
    for place, resident in enumerate(residents):
        agent, _ = Agent.objects.get_or_create(
            id=resident.slug, defaults={"name": resident.name, "owner": owners[place % len(owners)]}
        )
        draft = Draft(base_prompt, resident.strategy, resident.skill_sections, model)
        versions.append(newest_version(agent) or publish(agent, draft))
    return versions


def _person(name: str) -> User:
    """The user, made without a password (nobody can sign in with none) where there is none."""
    operator = name == OPERATOR
    user, made = get_user_model().objects.get_or_create(
        username=name, defaults={"is_staff": operator, "is_superuser": operator}
    )
    if made:
        user.set_unusable_password()
        user.save(update_fields=["password"])
    return user


def _ensure_password(user: User, reset: bool) -> str | None:
    if user.has_usable_password() and not reset:
        return None
    password = secrets.token_urlsafe(12)
    user.set_password(password)
    user.save(update_fields=["password"])
    return password
