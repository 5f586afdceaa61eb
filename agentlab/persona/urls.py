from django.urls import path

from agentlab.persona import views

urlpatterns = [
    path("personas", views.studies, name="personas"),
    path("personas/compare", views.compare, name="study-compare"),
    path("personas/<int:number>", views.study, name="study"),
    path("personas/<int:number>/live", views.live, name="study-live"),
    path("personas/<int:number>/verify", views.verify, name="study-verify"),
    path("personas/<int:number>/delete", views.delete, name="study-delete"),
    path("personas/<int:number>/beliefs.csv", views.beliefs_csv, name="study-beliefs"),
    path("personas/<int:number>/trace.jsonl", views.trace, name="study-trace"),
    path("personas/<int:number>/p/<str:key>", views.persona, name="study-persona"),
    path("personas/<int:number>/p/<str:key>/<int:turn>", views.turn, name="study-turn"),
    path("personas/<int:number>/p/<str:key>/<int:turn>/<str:part>/raw", views.raw, name="study-raw"),
]
