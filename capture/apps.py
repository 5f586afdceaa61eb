from django.apps import AppConfig


class CaptureConfig(AppConfig):
    name = "capture"
    label = "capture"
