"""Publishing a version of an agent, and seating one at a table."""

from django.db import transaction

from agentlab.agents.models import Agent, AgentDeployment, AgentVersion

Skills = list[dict[str, str]]


@transaction.atomic
def publish(
    agent: Agent, *, base_prompt: str, strategy: str, skills: Skills, model: str = "house"
) -> tuple[AgentVersion, bool]:
    """The agent's newest version if it says the same, else a new one with the next number; whether it is new."""
    Agent.objects.select_for_update().get(pk=agent.pk)  # two publishers at once would take the same number
    said = {"base_prompt": base_prompt, "strategy": strategy, "skills": skills, "model": model}
    newest = agent.versions.order_by("-number").first()
    if newest and all(getattr(newest, name) == value for name, value in said.items()):
        return newest, False
    number = newest.number + 1 if newest else 1
    return AgentVersion.objects.create(id=f"{agent.pk}-v{number}", agent=agent, number=number, **said), True


def deploy(version: AgentVersion, table_id: str) -> AgentDeployment:
    """A seat at the table, with a copy of what the version says."""
    return AgentDeployment.objects.create(
        agent_id=version.agent_id,
        version=version,
        table_id=table_id,
        base_prompt=version.base_prompt,
        strategy=version.strategy,
        skills=version.skills,
        model=version.model,
    )
