from django.apps import AppConfig


class CommonConfig(AppConfig):
    name = "agentlab.common"
    label = "common"
    verbose_name = "Audit"
