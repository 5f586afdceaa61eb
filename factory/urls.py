from django.urls import path

from factory import api, views
from factory.uploading import upload

_ATTEMPT = "factory/runs/<int:run_id>/attempts/<int:number>"

urlpatterns = [
    path("factory", views.runs, name="factory"),
    path("factory/import", upload, name="factory-import"),
    path("factory/runs/<int:run_id>", views.run, name="factory-run"),
    path("factory/runs/<int:run_id>/live", views.run_live, name="factory-run-live"),
    path(_ATTEMPT, views.attempt, name="factory-attempt"),
    path(f"{_ATTEMPT}/<slug:name>", views.text, name="factory-text"),
    path(f"{_ATTEMPT}/<slug:name>/raw", views.raw, name="factory-raw"),
    path(f"{_ATTEMPT}/tools/<int:seq>", views.tool, name="factory-tool"),
    path(f"{_ATTEMPT}/tools/<int:seq>/raw", views.tool_raw, name="factory-tool-raw"),
    path("factory/inputs/<int:input_id>", views.preview, name="factory-input"),
    path("api/collector/attempts/<slug:attempt_id>", api.attempt, name="collector-attempt"),
    path("api/collector/inputs/<int:input_id>", api.preview, name="collector-input"),
]
