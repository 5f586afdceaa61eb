from django.apps import AppConfig


class AgentsConfig(AppConfig):
    name = "agentlab.agents"
    label = "agents"
