"""Every route of the site. Each room keeps its own list."""

from django.contrib import admin
from django.urls import include, path

from agentlab.common.signin import admin_sign_in

urlpatterns = [
    path("admin/login/", admin_sign_in),
    path("admin/", admin.site.urls),
    path("", include("agentlab.common.urls")),
]
