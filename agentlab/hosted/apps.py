from django.apps import AppConfig


class HostedConfig(AppConfig):
    name = "agentlab.hosted"
    label = "hosted"

    def ready(self) -> None:
        from agentlab.hosted.notes import memory_gap, renders_otherwise
        from capture.notes import register

        register(memory_gap)
        register(renders_otherwise)
