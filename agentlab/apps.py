from django.apps import AppConfig


class AgentlabConfig(AppConfig):
    name = "agentlab"
    label = "agentlab"
