from django.urls import path

from capture import api
from capture.proxy import proxied

INTERNAL, PROXY = "internal/agent-capture/", "api/hosted-agent/"

urlpatterns = [
    path("internal/schema", api.Schema.as_view(), name="internal-schema"),
    path(f"{INTERNAL}hand", api.HandOperation.as_view()),
    path(f"{INTERNAL}hand-all", api.HandAllOperation.as_view()),
    path(f"{INTERNAL}hands", api.HandsOperation.as_view()),
    path(f"{INTERNAL}neighbours", api.NeighboursOperation.as_view()),
    path(f"{INTERNAL}neighbours-all", api.NeighboursAllOperation.as_view()),
    path(f"{INTERNAL}today", api.TodayOperation.as_view()),
    path(f"{INTERNAL}promote", api.PromoteOperation.as_view()),
    path(f"{INTERNAL}unpin", api.UnpinOperation.as_view()),
    # What a browser may ask for: these methods on these paths, and nothing else of the host.
    path(f"{PROXY}hand", proxied(api.HandOperation)),
    path(f"{PROXY}hand-all", proxied(api.HandAllOperation)),
    path(f"{PROXY}hands", proxied(api.HandsOperation)),
    path(f"{PROXY}promote", proxied(api.PromoteOperation)),
    path(f"{PROXY}unpin", proxied(api.UnpinOperation)),
]
