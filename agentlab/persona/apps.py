from django.apps import AppConfig


class PersonaConfig(AppConfig):
    name = "agentlab.persona"
    label = "persona"
    verbose_name = "Studies of personas"
