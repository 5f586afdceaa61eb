from django.urls import path

from agentlab.agents import views

urlpatterns = [
    path("agents/new", views.new_agent, name="new-agent"),
    path("agents/<slug:agent_id>/versions", views.versions, name="versions"),
    path("agents/<slug:agent_id>/versions/new", views.publish, name="publish"),
    path("agents/<slug:agent_id>/versions/<slug:version_id>", views.version, name="version"),
    path("agents/<slug:agent_id>/whispers", views.whispers, name="whispers"),
    path("agents/<slug:agent_id>/whispers/<int:whisper_id>/withdraw", views.withdraw, name="withdraw-whisper"),
]
