"""The pi coding agent: one process a send, one session file for all of them, read through its JSON event stream.

Facts this rests on were tried with pi 0.73.1, the version `make pi` installs: the message is taken from standard
input (a command line holds no more than 128 KiB), `--session ID` appends to the same file, an image given as
`@file` adds an empty `<file>` marker to the user's text, `agent_end` comes once for each of pi's own retries, and
the exit code is 0 even where every one of them failed.
"""

import json
import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

from factory import values
from factory.calls import Attachment
from factory.childenv import child_environment
from factory.children import end_group, started
from factory.outcomes import Reply, ToolCall
from factory.providers import Endpoint, Messages, ProviderError

TIMEOUT_SECONDS = 3600.0
DEFAULT_URL = "https://api.openai.com/v1"
_OURS = "agentlab"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}\Z")
# Lines that repeat what `message_end` says, growing with each: not even parsed.
_REPEATS = ('{"type":"message_update"', '{"type":"message_start"', '{"type":"turn_end"', '{"type":"agent_end"')
_ISOLATED = (
    *("--no-extensions", "--no-skills", "--no-prompt-templates", "--no-themes", "--no-context-files", "--offline"),
)


@dataclass(frozen=True, slots=True)
class Pi:
    """pi against the endpoint of our settings, or, where there is none, with the user's own pi configuration (its
    models, its log-ins; images are then refused, as that configuration may let pi alter them)."""

    command: Path
    endpoint: Endpoint
    name: str = "pi"
    retry_delay_ms: int = 2000
    has_tools: bool = True

    @classmethod
    def parse(cls, option: str, endpoint: Endpoint, project: Path) -> "Pi":
        command = project / "node_modules" / ".bin" / "pi"
        if not command.exists():
            raise ProviderError("pi is not installed; `make pi` installs it (it needs Node.js 20 or newer)")
        model = option or endpoint.model
        if endpoint.is_set and not model:
            raise ProviderError("pi needs a model: --provider pi:NAME, or AGENTLAB_MODEL")
        return cls(command, Endpoint(endpoint.base_url, endpoint.api_key, model), f"pi:{option}" if option else "pi")

    def accepts(self, attachment: Attachment) -> bool:
        return self.endpoint.is_set and attachment.media_type.startswith("image/")

    def open(self, workspace: Path, run_id: int) -> "PiSession":
        home = workspace.with_name(f"{workspace.name}-pi")
        home.mkdir(mode=0o700)
        session = PiSession(self, workspace, home, model=self.endpoint.model)
        if self.endpoint.is_set:
            session.configure()
        return session


@dataclass(slots=True)
class PiSession:
    """One pi session; `home` holds its session file, and our configuration while it is open."""

    pi: Pi
    workspace: Path
    home: Path
    model: str
    session_id: str | None = None
    _turn: int = 0

    def configure(self) -> None:
        """pi's own settings for this session. The key stands in a file rather than in the environment, which every
        command that the agent runs would inherit."""
        endpoint = self.pi.endpoint
        agent = self.home / "agent"
        agent.mkdir(mode=0o700)
        model = {"id": endpoint.model, "input": ["text", "image"]}
        plain = {"supportsDeveloperRole": False, "supportsReasoningEffort": False, "supportsStore": False}
        provider = {
            "baseUrl": endpoint.base_url or DEFAULT_URL,
            "api": "openai-completions",
            "apiKey": endpoint.api_key or "none",
            "compat": plain,
            "models": [model],
        }
        settings = {
            "images": {"autoResize": False},
            "retry": {"baseDelayMs": self.pi.retry_delay_ms, "provider": {"maxRetries": 0}},
            "enableInstallTelemetry": False,
        }
        _write_private(agent / "models.json", {"providers": {_OURS: provider}})
        _write_private(agent / "settings.json", settings)

    def exact(self, messages: Messages) -> Messages:
        """pi adds the date and the directory to the system prompt, and a marker for each image to the message."""
        if messages.user != messages.user.strip():
            raise ProviderError("pi would strip the white space around this message")
        system = f"{messages.system}\nCurrent date: {time.strftime('%Y-%m-%d')}"
        system += f"\nCurrent working directory: {self.workspace}"
        marks = "".join(f'<file name="{path}"></file>\n' for path, _ in self._files(messages))
        return Messages(system, messages.user + marks, messages.attachments)

    def launch_command(self, messages: Messages) -> str:
        return " ".join(self._arguments("SYSTEM-PROMPT", [path for path, _ in self._files(messages)])) + " < MESSAGE"

    def send(self, messages: Messages) -> Reply:
        files = self._files(messages)
        for path, attachment in files:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.write_bytes(attachment.data)
        heard = _Heard(self.exact(messages).user)
        with self._process(messages, [path for path, _ in files]) as (process, errors):
            assert process.stdout
            heard.listen(process.stdout)
            code = process.wait()
        self._turn += 1
        self.session_id = heard.session_id or self.session_id
        return heard.reply(self.model, self.session_id, _ended_badly(code, errors))

    def close(self) -> None:
        (self.home / "agent" / "models.json").unlink(missing_ok=True)

    @contextmanager
    def _process(self, messages: Messages, files: list[Path]) -> Iterator[tuple["subprocess.Popen[bytes]", list[str]]]:
        extra = {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"}
        if self.pi.endpoint.is_set:
            extra["PI_CODING_AGENT_DIR"] = str(self.home / "agent")
        errors: list[str] = []
        with tempfile.TemporaryFile() as message, tempfile.TemporaryFile() as stderr:
            message.write(messages.user.encode())
            message.seek(0)
            child = started(
                self._arguments(messages.system, files),
                cwd=self.workspace,
                env=child_environment(extra),
                stdin=message,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
            with child as process:
                late = threading.Timer(TIMEOUT_SECONDS, end_group, [process])
                late.start()
                try:
                    yield process, errors
                finally:
                    late.cancel()
            stderr.seek(0)
            errors += stderr.read().decode("utf-8", "replace").split("\n")

    def _arguments(self, system: str, files: list[Path]) -> list[str]:
        ours = ["--provider", _OURS] if self.pi.endpoint.is_set else []
        model = ["--model", self.model] if self.model else []
        again = ["--session", self.session_id] if self.session_id else []
        return [
            *(str(self.pi.command), "--mode", "json", "--session-dir", str(self.home / "sessions"), *again),
            *(*ours, *model, *_ISOLATED, "--system-prompt", system),
            *(f"@{path}" for path in files),
        ]

    def _files(self, messages: Messages) -> list[tuple[Path, Attachment]]:
        """Where this turn's attachments will lie for pi: written from the bytes we hold, so that what is recorded and
        what is sent are the same."""
        folder = self.home / "attachments" / str(self._turn + 1)
        return [(folder / f"{number}-{_safe_name(one)}", one) for number, one in enumerate(messages.attachments, 1)]


@dataclass(slots=True)
class _Tool:
    name: str
    arguments: str
    output: str | None = None
    is_error: bool = False
    started_at: datetime | None = None
    began: float | None = None
    duration_ms: int | None = None


@dataclass(slots=True)
class _Heard:
    """What pi's event stream has said so far."""

    expected: str
    session_id: str | None = None
    text: str | None = None
    failure: str = ""
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal = Decimal(0)
    usages: int = 0
    remarks: list[str] = field(default_factory=list)
    tools: dict[str, _Tool] = field(default_factory=dict)

    def listen(self, lines: IO[bytes]) -> None:
        for line in lines:
            text = line.decode("utf-8", "replace")
            if text.startswith(_REPEATS):
                continue
            try:
                event = json.loads(text)
            except ValueError:
                continue
            if isinstance(event, dict):
                self._hear(event)

    def _hear(self, event: dict[str, Any]) -> None:
        match event:
            case {"type": "session", "id": str(session_id)}:
                self.session_id = session_id
            case {"type": "message_end", "message": {"role": "user"} as message}:
                self._user(message)
            case {"type": "message_end", "message": {"role": "assistant"} as message}:
                self._assistant(message)
            case {"type": "tool_execution_start", "toolCallId": str(key), "toolName": str(name)}:
                tool = self.tools.setdefault(key, _Tool(name, _json(event.get("args"))))
                tool.started_at, tool.began = datetime.now(UTC), time.monotonic()
            case {"type": "tool_execution_end", "toolCallId": str(key), "result": result}:
                self._tool_result(key, result, bool(event.get("isError")))
            case {"type": "compaction_end", "aborted": False}:
                self.remarks.append("pi compacted the session: the model no longer has its earlier turns word for word")
            case {"type": "auto_retry_end", "success": False}:
                self.failure = str(event.get("finalError") or "every retry failed")

    def _user(self, message: dict[str, Any]) -> None:
        if (said := _text(message.get("content"))) != self.expected:
            self.remarks.append(f"pi sent another message than the recorded one ({len(said)} characters)")

    def _assistant(self, message: dict[str, Any]) -> None:
        usage = message.get("usage")
        if isinstance(usage, dict):
            self.usages += 1
            cached = sum(values.count(usage.get(name)) or 0 for name in ("cacheRead", "cacheWrite"))
            self.cached_input_tokens += cached
            self.input_tokens += cached + (values.count(usage.get("input")) or 0)
            self.output_tokens += values.count(usage.get("output")) or 0
            self.cost += values.money(values.mapping(usage.get("cost")).get("total")) or 0
        failed = values.text(message.get("stopReason")) in {"error", "aborted"}
        self.failure = str(message.get("errorMessage") or message["stopReason"]) if failed else ""
        if not failed:
            self.text = _text(message.get("content"))

    def _tool_result(self, key: str, result: object, is_error: bool) -> None:
        tool = self.tools.get(key)
        if tool is None:
            return
        tool.output = _text(result.get("content")) if isinstance(result, dict) else _json(result)
        tool.is_error = is_error
        if tool.began is not None:
            tool.duration_ms = round((time.monotonic() - tool.began) * 1000)

    def reply(self, model: str, session_id: str | None, bad_end: str) -> Reply:
        error = self.failure or bad_end or ("" if self.text is not None else "pi ended without an answer")
        return Reply(
            self.text,
            error=error,
            model=model,
            session_id=session_id,
            input_tokens=values.count(self.input_tokens) if self.usages else None,
            cached_input_tokens=values.count(self.cached_input_tokens) if self.usages else None,
            output_tokens=values.count(self.output_tokens) if self.usages else None,
            cost=values.money(self.cost) or None,  # a model without a price costs "0" in pi's books
            tool_calls=tuple(
                ToolCall(
                    tool.name,
                    tool.arguments,
                    tool.output,
                    is_error=tool.is_error,
                    started_at=tool.started_at,
                    duration_ms=tool.duration_ms,
                )
                for tool in self.tools.values()
            ),
            remarks=tuple(self.remarks),
        )


def _write_private(path: Path, value: object) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        json.dump(value, file)


def _safe_name(attachment: Attachment) -> str:
    if _PLAIN_NAME.match(attachment.label):
        return attachment.label
    return "image." + attachment.media_type.partition("/")[2]


def _ended_badly(code: int, errors: Iterable[str]) -> str:
    if code == 0:
        return ""
    said = [line.strip() for line in errors if line.strip()]
    return f"pi ended with exit code {code}" + (f": {said[-1]}" if said else "")


def _text(content: object) -> str:
    """The text blocks of a message's content, or the content itself where it is text."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "".join(
        str(block["text"])
        for block in blocks
        if isinstance(block, dict) and block.get("type") == "text" and "text" in block
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
