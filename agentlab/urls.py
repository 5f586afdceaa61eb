"""Every route of the site. Each room keeps its own list."""

from django.contrib import admin
from django.urls import include, path

from agentlab.common.signin import admin_sign_in
from agentlab.health import healthz
from agentlab.home import home

urlpatterns = [
    path("admin/login/", admin_sign_in),
    path("admin/", admin.site.urls),
    path("healthz", healthz, name="healthz"),
    path("", home, name="home"),
    path("", include("agentlab.common.urls")),
    path("", include("capture.urls")),
    path("", include("capture.api_urls")),
    path("", include("agentlab.agents.urls")),  # before the next: `agents/new` is a page, not an agent
    path("", include("capture.owner_urls")),
    path("", include("factory.urls")),
    path("", include("agentlab.persona.urls")),
]

handler400 = "agentlab.common.views.bad_request"
handler403 = "agentlab.common.views.forbidden"
handler404 = "agentlab.common.views.not_found"
handler500 = "agentlab.common.views.broken"
