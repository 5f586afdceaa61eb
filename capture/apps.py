from django.apps import AppConfig


class CaptureConfig(AppConfig):
    name = "capture"
    label = "capture"
    verbose_name = "Kept hands"

    def ready(self) -> None:
        from capture import checks, service_key  # noqa: F401 - both register themselves
