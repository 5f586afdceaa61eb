from django.apps import AppConfig


class HostedConfig(AppConfig):
    name = "agentlab.hosted"
    label = "hosted"
