"""What each route answers to each kind of person. A route that is not here fails `test_every_route`.

A route's key is its pattern as the resolver spells it. Its requests name the four answers in the order nobody,
stranger (signed in, owns nothing), owner, operator; `world.py` makes what the URLs speak of.
"""

from dataclasses import dataclass, field

LOGIN = 302  # to the form, told apart from other redirects by its Location
GONE = 404  # “as if it were not there”


Wanted = int | str | None  # a status, "login", where it redirects to, or not asked at all


@dataclass(frozen=True)
class Ask:
    url: str
    nobody: Wanted
    stranger: Wanted
    owner: Wanted
    operator: Wanted
    method: str = "get"
    data: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


def open_to_all(url: str, status: int | str = 200) -> Ask:
    return Ask(url, status, status, status, status)


def operators(url: str, status: int | str = 200, **more: object) -> Ask:
    return Ask(url, "login", GONE, GONE, status, **more)  # type: ignore[arg-type]


def signed_in(url: str) -> Ask:
    return Ask(url, "login", 200, 200, 200)


def owners(url: str, status: int | str = 200) -> Ask:
    """What an owner sees of their own, and an operator of everybody's."""
    return Ask(url, "login", GONE, status, status)


def owner_alone(url: str, status: int | str = 200, **more: object) -> Ask:
    """What only the owner may do, the operator too finds nothing there."""
    return Ask(url, "login", GONE, status, GONE, **more)  # type: ignore[arg-type]


def service(url: str, method: str = "get") -> Ask:
    """Behind the service key: no session opens it, whoever's it is."""
    return Ask(url, 401, 401, 401, 401, method=method)


HAND = "table=T-1&hand=7"
TURN = f"{HAND}&agent=rocky&turn=0&part=prompt"
API_HAND = "tableId=T-1&handNumber=7"
HTMX = {"HX-Request": "true"}

COMMON = {
    "": [open_to_all("/")],
    "login": [Ask("/login", 200, "/", "/", "/")],
    "logout": [Ask("/logout", "login", 405, 405, 405), Ask("/logout", "login", "/", "/", "/", method="post")],
    "theme": [Ask("/theme", "/", "/", "/", "/", method="post", data={"theme": "dark"}), open_to_all("/theme", 405)],
    "healthz": [open_to_all("/healthz")],
}
CAPTURE = {
    "agent-capture": [operators("/agent-capture"), operators(f"/agent-capture?{HAND}")],
    "agent-capture/recent": [operators("/agent-capture/recent", headers=HTMX)],
    "agent-capture/news": [operators("/agent-capture/news", 400, headers=HTMX)],
    "agent-capture/part": [
        operators(f"/agent-capture/part?{TURN}"),
        operators(f"/agent-capture/part?{TURN}", headers=HTMX),
    ],
    "agent-capture/raw": [operators(f"/agent-capture/raw?{TURN}")],
    "agent-capture/keep": [
        operators(
            "/agent-capture/keep",
            "/agent-capture?table=T-1&hand=7",
            method="post",
            data={"table": "T-1", "hand": "7", "agent": "rocky"},
        ),
    ],
    "agent-capture/unkeep": [
        operators(f"/agent-capture/unkeep?{HAND}&agent=nobodys"),
        operators(f"/agent-capture/unkeep?{HAND}&agent=rocky", GONE),
    ],
}
INTERNAL = {
    "internal/schema": [service("/internal/schema")],
    "internal/agent-capture/hand": [service(f"/internal/agent-capture/hand?{API_HAND}&agentId=rocky")],
    "internal/agent-capture/hand-all": [service(f"/internal/agent-capture/hand-all?{API_HAND}")],
    "internal/agent-capture/hands": [service("/internal/agent-capture/hands")],
    "internal/agent-capture/neighbours": [service(f"/internal/agent-capture/neighbours?{API_HAND}&agentId=rocky")],
    "internal/agent-capture/neighbours-all": [service(f"/internal/agent-capture/neighbours-all?{API_HAND}")],
    "internal/agent-capture/today": [service("/internal/agent-capture/today?agentId=rocky")],
    "internal/agent-capture/promote": [service("/internal/agent-capture/promote", "post")],
    "internal/agent-capture/unpin": [service("/internal/agent-capture/unpin", "post")],
}
PROXY = {
    "api/hosted-agent/hand": [Ask(f"/api/hosted-agent/hand?{API_HAND}&agentId=rocky", 403, GONE, GONE, 200)],
    "api/hosted-agent/hand-all": [Ask(f"/api/hosted-agent/hand-all?{API_HAND}", 403, GONE, GONE, 200)],
    "api/hosted-agent/hands": [Ask("/api/hosted-agent/hands", 403, GONE, GONE, 200)],
    "api/hosted-agent/promote": [Ask("/api/hosted-agent/promote", 403, GONE, GONE, 415, method="post")],
    "api/hosted-agent/unpin": [Ask("/api/hosted-agent/unpin", 403, GONE, GONE, 415, method="post")],
}
AGENT_HAND = f"/agents/rocky/hand?{HAND}"
AGENT_TURN = f"{HAND}&turn=0&part=prompt"
AGENTS = {
    "agents": [signed_in("/agents")],
    "agents/new": [signed_in("/agents/new")],
    "agents/<slug:agent_id>": [owners("/agents/rocky")],
    "agents/<slug:agent_id>/kept": [owners("/agents/rocky/kept")],
    "agents/<slug:agent_id>/hand": [owners(AGENT_HAND)],
    "agents/<slug:agent_id>/hand/part": [owners(f"/agents/rocky/hand/part?{AGENT_TURN}")],
    "agents/<slug:agent_id>/hand/raw": [owners(f"/agents/rocky/hand/raw?{AGENT_TURN}")],
    "agents/<slug:agent_id>/versions": [owners("/agents/rocky/versions")],
    "agents/<slug:agent_id>/versions/<slug:version_id>": [owners("/agents/rocky/versions/rocky-v1")],
    "agents/<slug:agent_id>/versions/new": [owner_alone("/agents/rocky/versions/new")],
    "agents/<slug:agent_id>/whispers": [
        owners("/agents/rocky/whispers"),
        owner_alone("/agents/rocky/whispers", "/agents/rocky/whispers", method="post", data={"text": "hello"}),
    ],
    "agents/<slug:agent_id>/whispers/<int:whisper_id>/withdraw": [
        owner_alone("/agents/rocky/whispers/{whisper}/withdraw"),
        owner_alone("/agents/rocky/whispers/{whisper}/withdraw", "/agents/rocky/whispers", method="post"),
    ],
    "agents/<slug:agent_id>/keep": [
        owner_alone("/agents/rocky/keep", AGENT_HAND, method="post", data={"table": "T-1", "hand": "7"}),
    ],
    "agents/<slug:agent_id>/unkeep": [
        owner_alone("/agents/rocky/unkeep", "/agents/rocky/kept", method="post", data={"table": "T-1", "hand": "7"}),
    ],
}
ATTEMPT = "factory/runs/<int:run_id>/attempts/<int:number>"
FACTORY = {
    "factory": [signed_in("/factory")],
    "factory/import": [Ask("/factory/import", "login", *["/factory?read"] * 3, method="post")],
    "factory/runs/<int:run_id>": [owners("/factory/runs/{run}")],
    "factory/runs/<int:run_id>/live": [owners("/factory/runs/{run}/live", 286)],
    ATTEMPT: [owners("/factory/runs/{run}/attempts/1")],
    f"{ATTEMPT}/<slug:name>": [owners("/factory/runs/{run}/attempts/1/task")],
    f"{ATTEMPT}/<slug:name>/raw": [owners("/factory/runs/{run}/attempts/1/task/raw")],
    f"{ATTEMPT}/tools/<int:seq>": [owners("/factory/runs/{run}/attempts/1/tools/1")],
    f"{ATTEMPT}/tools/<int:seq>/raw": [owners("/factory/runs/{run}/attempts/1/tools/1/raw")],
    "factory/inputs/<int:input_id>": [owners("/factory/inputs/{input}")],
    "api/collector/attempts/<slug:attempt_id>": [owners("/api/collector/attempts/{attempt}")],
    "api/collector/inputs/<int:input_id>": [owners("/api/collector/inputs/{input}")],
}
WHO = "personas/<int:number>/p/<str:key>"
PERSONAS = {
    "personas": [signed_in("/personas")],
    "personas/compare": [owners("/personas/compare?a={study}&b={study}")],
    "personas/<int:number>": [owners("/personas/{study}")],
    "personas/<int:number>/live": [owners("/personas/{study}/live", 286)],
    # Asked of those alone who may not: for the others it begins to replay the trace.
    "personas/<int:number>/verify": [
        Ask("/personas/{study}/verify", "login", GONE, None, None, method="post"),
        Ask("/personas/{study}/verify", "login", 405, 405, 405),
    ],
    # Posted by those alone who may not: for the others it is then gone.
    "personas/<int:number>/delete": [
        owners("/personas/{study}/delete"),
        Ask("/personas/{study}/delete", "login", GONE, None, None, method="post"),
    ],
    "personas/<int:number>/beliefs.csv": [owners("/personas/{study}/beliefs.csv")],
    "personas/<int:number>/trace.jsonl": [owners("/personas/{study}/trace.jsonl")],
    WHO: [owners("/personas/{study}/p/ada")],
    f"{WHO}/<int:turn>": [owners("/personas/{study}/p/ada/1")],
    f"{WHO}/<int:turn>/<str:part>/raw": [owners("/personas/{study}/p/ada/1/shown/raw")],
}

ROUTES: dict[str, list[Ask]] = {**COMMON, **CAPTURE, **INTERNAL, **PROXY, **AGENTS, **FACTORY, **PERSONAS}
