from django.urls import path

from capture import views

urlpatterns = [
    path("agent-capture", views.hands, name="captured-hands"),
    path("agent-capture/recent", views.recent, name="recent-hands"),
    path("agent-capture/news", views.news, name="hand-news"),
    path("agent-capture/part", views.part, name="turn-part"),
    path("agent-capture/raw", views.raw, name="turn-raw"),
    path("agent-capture/keep", views.keep, name="keep-hand"),
    path("agent-capture/unkeep", views.unkeep, name="unkeep-captured-hand"),
]
