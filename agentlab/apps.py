from django.apps import AppConfig


class AgentlabConfig(AppConfig):
    name = "agentlab"
    label = "agentlab"

    def ready(self) -> None:
        from agentlab import checks  # noqa: F401 - registers itself
