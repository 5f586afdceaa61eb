"""The people and agents of a local site."""

from dataclasses import dataclass, field

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User

from agentlab.agents import demo
from agentlab.agents.models import Agent
from agentlab.agents.services import Draft, publish

pytestmark = pytest.mark.django_db


@dataclass
class Resident:
    slug: str
    name: str = "Rocky"
    strategy: str = "Tight."
    skill_sections: list[dict[str, str]] = field(default_factory=list)


def test_there_is_an_operator_and_two_owners_with_passwords_that_work() -> None:  # HA-11
    people = demo.ensure_people()
    assert list(people) == ["operator", "ada", "ben"]
    signed_in = [authenticate(username=name, password=password) for name, password in people.items()]
    assert [(user.is_staff, user.is_superuser) for user in signed_in if user] == [
        (True, True),
        (False, False),
        (False, False),
    ]


def test_passwords_are_as_before_unless_they_are_reset() -> None:  # SF-3
    first = demo.ensure_people()
    assert demo.ensure_people() == dict.fromkeys(first)
    again = demo.ensure_people(reset=True)
    assert all(again.values())
    assert authenticate(username="ada", password=first["ada"]) is None
    assert authenticate(username="ada", password=again["ada"])


def test_house_agents_are_shared_out_between_the_owners() -> None:  # HA-11
    versions = demo.ensure_house([Resident("rocky"), Resident("nit"), Resident("callie")], base_prompt="Play.")
    assert [version.id for version in versions] == ["rocky-v1", "nit-v1", "callie-v1"]
    assert [agent.owner.username for agent in Agent.objects.order_by("created_at")] == ["ada", "ben", "ada"]
    assert not User.objects.get(username="ada").has_usable_password()


def test_what_an_owner_has_published_since_stays() -> None:  # HA-11
    demo.ensure_house([Resident("rocky")], base_prompt="Play.")
    publish(Agent.objects.get(), Draft("My own.", "Loose.", [], "house"))
    assert demo.ensure_house([Resident("rocky")], base_prompt="Play.")[0].id == "rocky-v2"


def test_where_people_have_accounts_the_house_has_one_of_its_own_that_nobody_signs_in_to() -> None:  # HA-11
    demo.ensure_house([Resident("rocky"), Resident("nit")], base_prompt="Play.", owned_by=(demo.HOUSE_OWNER,))
    assert {agent.owner.username for agent in Agent.objects.all()} == {"house"}
    assert list(User.objects.values_list("username", flat=True)) == ["house"]
    assert not User.objects.get().has_usable_password()
