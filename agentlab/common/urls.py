from django.contrib.auth.views import LogoutView
from django.urls import path

from agentlab.common import views

urlpatterns = [
    path("login", views.SignIn.as_view(), name="login"),
    path("logout", LogoutView.as_view(), name="logout"),
    path("theme", views.set_theme, name="theme"),
]
