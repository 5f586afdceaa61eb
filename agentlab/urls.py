"""Every route of the site. Each room keeps its own list."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("admin/", admin.site.urls),
    path("", include("agentlab.common.urls")),
]
