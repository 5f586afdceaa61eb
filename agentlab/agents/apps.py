from django.apps import AppConfig


class AgentsConfig(AppConfig):
    name = "agentlab.agents"
    label = "agents"
    verbose_name = "Agents, and the ledger of their turns"
