from django.urls import path

from capture import owner_views

urlpatterns = [
    path("agents", owner_views.agents, name="agents"),
    path("agents/<slug:agent_id>", owner_views.hands, name="agent"),
    path("agents/<slug:agent_id>/kept", owner_views.kept, name="kept-hands"),
    path("agents/<slug:agent_id>/hand", owner_views.hand, name="agent-hand"),
    path("agents/<slug:agent_id>/hand/part", owner_views.part),
    path("agents/<slug:agent_id>/hand/raw", owner_views.raw),
    path("agents/<slug:agent_id>/keep", owner_views.keep, name="keep-agent-hand"),
    path("agents/<slug:agent_id>/unkeep", owner_views.unkeep, name="unkeep-hand"),
]
