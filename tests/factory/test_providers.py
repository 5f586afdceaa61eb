"""What each provider really sends, seen at the far end's socket, and what it makes of the answers."""

import base64
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from factory.calls import AgentCall, Attachment
from factory.checks import run_check
from factory.lineage import SessionTurns
from factory.models import AgentAttempt
from factory.outcomes import AttemptEnd
from factory.packets import AgentInputPacket
from factory.providers import Endpoint, Messages, Provider, ProviderError, Session, provider_named
from factory.providers.chat import Chat
from factory.providers.pi import Pi
from factory.recording import RunRecorder
from factory.resolve import RequestError, ResolvedRequest, resolve_request
from factory.retention import SnapshotStore
from factory.running import make_job
from factory.tracing import Tracer
from factory.workflow import RunEnd, WorkflowRun
from factory.workflows import WORKFLOWS
from tests.conftest import SHARED_DATA
from tests.openai_server import Says, ScriptedServer, scripted_server

PROJECT = Path(__file__).parent.parent.parent
PI = PROJECT / "node_modules" / ".bin" / "pi"
IMAGE = SHARED_DATA / "media/pillow/hopper.png"
KEY = "sk-our-own-key"
Run = Callable[..., tuple[int, RunEnd]]

needs_pi = pytest.mark.skipif(not PI.exists(), reason="pi is not installed: `make pi` needs Node.js 20 and npm")
over_the_network = pytest.mark.parametrize(
    "make", [pytest.param("chat", id="openai"), pytest.param("pi", id="pi", marks=needs_pi)]
)


def provider(make: str, server: ScriptedServer) -> Provider:
    endpoint = Endpoint(server.url, KEY, "scripted-1")
    if make == "chat":
        return Chat(endpoint, "openai:scripted-1")
    return Pi(PI, endpoint, retry_delay_ms=20)


def image() -> Attachment:
    return Attachment("shot.png", str(IMAGE), "image/png", IMAGE.read_bytes())


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "run-1"
    folder.mkdir()
    return folder


def texts(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


@over_the_network
def test_the_exact_messages_reach_the_model(make: str, workspace: Path) -> None:  # FA-8 FA-10
    asked = Messages("You are a test.", "### phase\n\nask \x00 é \u202e\r\n\r\nend", (image(),))
    with scripted_server(Says('{"answer": "x"}')) as server:
        session = provider(make, server).open(workspace, 1)
        exact = session.exact(asked)
        reply = session.send(asked)
        session.close()
    (request,) = server.requests
    assert [texts(message) for message in request["messages"]] == [exact.system, exact.user]
    parts = request["messages"][1]["content"]
    (picture,) = (part["image_url"]["url"] for part in parts if part["type"] == "image_url")
    assert picture == "data:image/png;base64," + base64.b64encode(IMAGE.read_bytes()).decode()
    assert (reply.text, reply.error) == ('{"answer": "x"}', "")
    assert (reply.input_tokens, reply.output_tokens, reply.cost) == (100, 10, None)
    assert reply.model == "scripted-1"
    assert reply.remarks == ()
    assert server.keys == [f"Bearer {KEY}"]


@over_the_network
def test_a_session_is_reused_and_the_model_gets_its_history(make: str, workspace: Path) -> None:  # FA-2
    with scripted_server(Says("one"), Says("two")) as server:
        session = provider(make, server).open(workspace, 1)
        first = session.send(Messages("You are", "first"))
        second = session.send(Messages("You are", "second"))
        session.close()
    assert first.session_id and first.session_id == second.session_id
    assert [(m["role"], texts(m)) for m in server.requests[1]["messages"][1:]] == [
        ("user", "first"),
        ("assistant", "one"),
        ("user", "second"),
    ]


@over_the_network
def test_a_provider_that_only_fails_is_a_failed_reply(make: str, workspace: Path) -> None:  # FA-2
    with scripted_server(*[Says(status=503)] * 9) as server:
        session = provider(make, server).open(workspace, 1)
        reply = session.send(Messages("You are", "first"))
        session.close()
    assert "overloaded" in reply.error
    assert reply.text is None


def test_an_answer_that_breaks_off_is_no_answer(workspace: Path) -> None:  # FA-2
    with scripted_server(Says('{"answer": "x"}', breaks_off=True), Says("again")) as server:
        session = provider("chat", server).open(workspace, 1)
        reply = session.send(Messages("You are", "first"))
        session.send(Messages("You are", "second"))
        session.close()
    assert (reply.text, reply.error) == ('{"answer": "x"}', "the answer broke off")
    assert [m["role"] for m in server.requests[1]["messages"]] == ["system", "user"], "a failed turn is not history"


def test_an_answer_that_was_cut_off_says_so(workspace: Path) -> None:  # FA-13
    with scripted_server(Says('{"answer": "x', finish="length")) as server:
        reply = provider("chat", server).open(workspace, 1).send(Messages("You are", "first"))
    assert reply.remarks == ("the answer was cut off at the model's length limit",)


def test_an_endpoint_that_is_not_there_is_a_failed_reply(workspace: Path) -> None:  # FA-2 SF-4
    session = Chat(Endpoint("http://127.0.0.1:9/v1", KEY, "x"), "openai:x").open(workspace, 1)
    assert session.send(Messages("You are", "first")).error.startswith("APIConnectionError")


@needs_pi
def test_pis_own_retry_is_inside_one_reply(workspace: Path) -> None:  # FA-13
    with scripted_server(Says(status=503), Says("fine")) as server:
        session = provider("pi", server).open(workspace, 1)
        reply = session.send(Messages("You are", "first"))
        session.close()
    assert (reply.text, reply.error) == ("fine", "")
    assert len(server.bodies) == 2


@needs_pi
def test_pis_tools_are_recorded_with_their_output_and_no_secret_of_ours(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # FA-13 FA-14
    secrets = {
        "SECRET_KEY": "our-secret",
        "AGENT_CAPTURE_SERVICE_KEY": "our-service-key",
        "DATABASE_URL": "our-database",
    }
    for name, value in {**secrets, "AGENT_CAPTURE_REDIS_URL": "our-redis", "OPENAI_API_KEY": KEY}.items():
        monkeypatch.setenv(name, value)
    with scripted_server(Says(tool=("bash", {"command": "env; exit 3"})), Says("done")) as server:
        session = provider("pi", server).open(workspace, 1)
        reply = session.send(Messages("You are", "first"))
        session.close()
    (call,) = reply.tool_calls
    assert (call.name, json.loads(call.arguments), call.is_error) == ("bash", {"command": "env; exit 3"}, True)
    assert call.output and "PATH=" in call.output
    assert call.started_at and call.duration_ms is not None
    assert "our-" not in call.output and KEY not in call.output
    assert reply.text == "done"


@needs_pi
def test_pis_key_does_not_stay_behind(workspace: Path) -> None:  # FA-14
    with scripted_server(Says("x")) as server:
        session = provider("pi", server).open(workspace, 1)
        session.send(Messages("You are", "first"))
        session.close()
    kept = [path for path in workspace.parent.rglob("*") if path.is_file()]
    assert any(path.suffix == ".jsonl" for path in kept), "its session file does"
    assert not [path for path in kept if KEY.encode() in path.read_bytes()]


@contextmanager
def interrupted_once(awaited: Callable[[], object]) -> Iterator[None]:
    """Ctrl-C for the block, once what is awaited has come. Whoever waits for the interpreter's lock gets it just before
    the main thread begins to read, and a signal that comes between goes unheard: then it is sent again."""
    ended = threading.Event()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever a test before this one left

    def interrupt() -> None:
        awaited()
        while not ended.is_set():
            os.kill(os.getpid(), signal.SIGINT)
            ended.wait(10)

    threading.Thread(target=interrupt, daemon=True).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        ended.set()


def until(there: Callable[[], bool]) -> None:
    while not there():
        time.sleep(0.05)


@needs_pi
def test_a_pi_that_is_interrupted_leaves_no_process(workspace: Path) -> None:  # SF-5
    with scripted_server() as server:
        session = provider("pi", server).open(workspace, 1)

        with interrupted_once(server.arrived.acquire):
            session.send(Messages("You are", "first"))
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    assert not [pid for pid in children if b"pi" in Path(f"/proc/{pid}/comm").read_bytes()]


@needs_pi
def test_a_tool_of_pis_ends_with_the_interrupted_pi(workspace: Path) -> None:  # SF-5
    """pi starts its tools in sessions of their own, where no signal to pi's own group comes."""
    with scripted_server(Says(tool=("bash", {"command": "echo $$ > new; mv new pid; exec sleep 600"}))) as server:
        session = provider("pi", server).open(workspace, 1)

        with interrupted_once(lambda: until((workspace / "pid").exists)):
            session.send(Messages("You are", "first"))
    pid = int((workspace / "pid").read_text())
    for _ in range(100):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    pytest.fail("the tool went on")


@pytest.mark.parametrize(
    "raw",
    [
        b'data: {"choices": [{"delta": {"content": "so far"}}]}\n\ndata: {"choi',
        b'data: {"choices": [{"delta": {"content": "so far"}}]}\n\ndata: not json\n\n',
        b'data: {"choices": [{"delta": {"content": "so far"}, "finish_reason": ["x"]}], "model": 7}\n\n',
    ],
)
def test_what_had_arrived_stands_beside_what_went_wrong(workspace: Path, raw: bytes) -> None:  # FA-13
    with raw_server(raw) as url:
        reply = Chat(Endpoint(url, KEY, "x"), "openai:x").open(workspace, 1).send(Messages("You are", "first"))
    assert reply.text == "so far"
    assert reply.error


@pytest.mark.parametrize(("details", "cached"), [('{"cached_tokens": 90}', 90), ("null", None), ('"x"', None)])
def test_what_an_endpoint_took_from_its_cache_is_part_of_the_input(
    workspace: Path, details: str, cached: int | None
) -> None:  # FA-13
    usage = f'{{"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {details}}}'.encode()
    raw = b'data: {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}], "model": "m"}\n\n'
    with raw_server(raw + b'data: {"choices": [], "usage": ' + usage + b"}\n\ndata: [DONE]\n\n") as url:
        reply = Chat(Endpoint(url, KEY, "x"), "openai:x").open(workspace, 1).send(Messages("You are", "first"))
    assert (reply.input_tokens, reply.cached_input_tokens) == (100, cached)


def test_numbers_that_are_none_are_not_recorded(workspace: Path) -> None:  # FA-13
    usage = b'{"prompt_tokens": "many", "completion_tokens": -5, "total_tokens": 1e999}'
    raw = b'data: {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}], "model": ["a"]}\n\n'
    with raw_server(raw + b'data: {"choices": [], "usage": ' + usage + b"}\n\ndata: [DONE]\n\n") as url:
        reply = Chat(Endpoint(url, KEY, "x"), "openai:x").open(workspace, 1).send(Messages("You are", "first"))
    assert (reply.text, reply.error, reply.model) == ("x", "", "x")
    assert (reply.input_tokens, reply.output_tokens) == (None, None)


@contextmanager
def raw_server(body: bytes) -> Iterator[str]:
    """The far end of one request, which answers these bytes as an event stream that promises more, and closes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                connection.sendall(head + f"{len(body):x}\r\n".encode() + body + b"\r\n")
                if body.endswith(b"[DONE]\n\n"):
                    connection.sendall(b"0\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        thread.join()


def test_a_password_in_the_endpoints_address_is_not_recorded(workspace: Path) -> None:  # FA-14
    session = Chat(Endpoint("http://ada:hunter2@h:1/v1?key=k1", KEY, "x"), "openai:x").open(workspace, 1)
    assert session.launch_command(Messages("You are", "first")).startswith("POST http://h:1/v1/chat/completions, ")


@pytest.mark.parametrize(
    ("spec", "endpoint", "said"),
    [
        ("openai:x", Endpoint(), "openai models need OPENAI_API_KEY"),
        ("openai", Endpoint("http://h"), "openai needs a model"),
        ("nobody", Endpoint(), "there is no provider 'nobody'"),
        ("rehearsal:x", Endpoint(), "cannot play 'x'"),
        ("pi", Endpoint(), "pi is not installed; `make pi`"),
    ],
)
def test_a_provider_that_cannot_be_used_says_why(
    spec: str, endpoint: Endpoint, said: str, tmp_path: Path
) -> None:  # SF-4
    with pytest.raises(ProviderError, match=said):
        provider_named(spec, endpoint=endpoint, project=tmp_path)


# Capture on and off ---------------------------------------------------------------------------------------------


class Unrecorded:
    """A recorder that records nothing: the factory with capture switched off."""

    def begin(
        self, call: AgentCall, turns: SessionTurns, session: Session, launch: str
    ) -> tuple[str, AgentInputPacket]:
        lineage = turns.next(call.phase, call.send_kind)
        packet = AgentInputPacket(None, "not_recorded", None, None, None, call.request, lineage, ())
        return f"{packet.lineage.turn_index:032}", packet

    def finish(self, attempt_id: str, end: AttemptEnd) -> None:
        pass


ANSWERS = (
    Says("I would rather tell you in words."),
    Says('{"summary": "s", "steps": ["a"]}'),
    Says('{"summary": "s", "files": []}'),
    Says('{"summary": "mended", "files": ["x"]}'),
    Says('{"summary": "s", "approved": true}'),
)


@pytest.fixture
def request_of_ours(tmp_path: Path) -> Iterator[tuple[ResolvedRequest, str]]:
    task = tmp_path / "task.md"
    task.write_bytes(b"Write a slugify command.\r\n\r\n")
    context = tmp_path / "context"
    context.mkdir()
    (context / "notes.md").write_text("notes")
    (context / "gone").symlink_to("nowhere")
    yield resolve_request(str(task)), str(context)


@pytest.mark.django_db
@over_the_network
def test_a_build_with_both_corrections_sends_the_same_bytes_with_capture_and_without(
    make: str, workspace: Path, store: SnapshotStore, request_of_ours: tuple[ResolvedRequest, str]
) -> None:  # FA-2 FA-4 FA-8 FA-10
    """An image, a context folder where the agent has tools, one parse retry and one gate retry."""
    request, context = request_of_ours
    sent = []
    for recorded in (True, False):
        with scripted_server(*ANSWERS) as server:
            agent = provider(make, server)
            job = make_job(
                request, agent, attach=[str(IMAGE)], context=context if agent.has_tools else None, check="false"
            )
            tracer = Tracer.start(request, workflow="build", provider=agent.name, owner_id=None)
            session = agent.open(workspace, 1)
            results = iter(("echo 'test_slug failed'; false", "true"))
            end = WorkflowRun(
                WORKFLOWS["build"],
                job,
                session,
                RunRecorder(tracer, store, agent.name) if recorded else Unrecorded(),
                check=lambda command: run_check(next(results), workspace),  # noqa: B023
            ).run()
            session.close()
            if make == "pi":
                workspace.with_name("run-1-pi").rename(workspace.with_name(f"was-{recorded}"))
        assert end.state == "succeeded", end.reason
        sent.append(server)
    assert len(sent[0].bodies) == len(ANSWERS)
    assert sent[0].bodies == sent[1].bodies
    five_turns_of_one_session_with_their_exact_messages(sent[0])


def five_turns_of_one_session_with_their_exact_messages(server: ScriptedServer) -> None:
    attempts = list(AgentAttempt.objects.order_by("number"))
    assert [(a.phase, a.send_kind, a.turn_index) for a in attempts] == [
        ("plan", "initial", 1),
        ("plan", "parse_retry", 2),
        ("build", "initial", 3),
        ("build", "gate_retry", 4),
        ("review", "initial", 5),
    ]
    assert len({a.session_id for a in attempts}) == 1 and attempts[0].session_id
    for attempt, request in zip(attempts, server.requests, strict=True):
        assert texts(request["messages"][0]) == attempt.system_prompt
        assert texts(request["messages"][-1]) == attempt.user_prompt
    assert "test_slug failed" in (attempts[3].user_prompt or "")
    sent = attempts[0].inputs.get(label="hopper.png")
    assert (sent.source_kind, sent.delivery_mode) == ("explicit_attachment", "provider_attachment")
    assert attempts[4].inputs.filter(delivery_mode="session_history", label="hopper.png").exists()


@pytest.mark.django_db
@over_the_network
def test_a_snapshot_that_cannot_be_kept_is_a_gap_and_the_model_is_asked_all_the_same(
    make: str, run: Run, store: SnapshotStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:  # FA-8
    def full(handle: int, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("factory.snapshots._write", full)
    task = tmp_path / "task.md"
    task.write_text("Do it")
    with scripted_server(Says('{"answer": "x"}')) as server:
        run_id, end = run(str(task), workflow="ask", provider=provider(make, server))
    assert end.state == "succeeded"
    assert "Do it" in texts(server.requests[0]["messages"][-1])
    row = AgentAttempt.objects.get(run_id=run_id).inputs.get()
    assert (row.capture_status, row.attempt.input_coverage) == ("limit_exceeded", "partial")


@pytest.mark.django_db
@needs_pi
def test_a_run_whose_agent_failed_is_failed_although_pi_exits_with_0(run: Run) -> None:  # FA-2
    with scripted_server(*[Says(status=503)] * 9) as server:
        run_id, end = run("Do it", workflow="ask", provider=provider("pi", server))
    assert end.state == "failed"
    attempt = AgentAttempt.objects.get(run_id=run_id)
    assert (attempt.state, attempt.failure) == ("failed", "provider")
    assert "overloaded" in attempt.error


@pytest.mark.django_db
def test_an_endpoint_without_tools_is_not_told_of_a_folder(run: Run, tmp_path: Path) -> None:  # FA-10 SF-4
    with scripted_server() as server, pytest.raises(RequestError, match="no tools to read a folder"):
        run("Do it", provider=provider("chat", server), context=str(tmp_path))
