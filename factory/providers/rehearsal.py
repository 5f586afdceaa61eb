"""An agent that needs no network: it plans, reads what it was pointed at, writes files, and answers in the form that
its message asks for. The same request gives the same answers, byte for byte.

`rehearsal:parse` makes the first reply of each phase unreadable, `rehearsal:check` leaves the first work of each
phase unfinished (it writes `draft` where it would write `done`), `rehearsal:fail` lets the provider fail; several
are joined by `,`.
"""

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from factory.calls import Attachment
from factory.outcomes import Reply, ToolCall
from factory.providers import Messages, ProviderError

MISHAPS = ("parse", "check", "fail")
_READ_LIMIT = 64 * 1024
_PHASE = re.compile(r"^### phase\n\n(\w+)", re.MULTILINE)
_CONTEXT = re.compile(r"^### context\n\n[^\n]*\n\n    ([^\n]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    mishaps: frozenset[str] = frozenset()
    name: str = "rehearsal"
    has_tools: bool = True

    @classmethod
    def parse(cls, option: str) -> "Rehearsal":
        mishaps = frozenset(filter(None, option.split(",")))
        if unknown := sorted(mishaps - set(MISHAPS)):
            raise ProviderError(f"the rehearsal cannot play {unknown[0]!r}; it can play {', '.join(MISHAPS)}")
        return cls(mishaps, f"rehearsal:{option}" if option else "rehearsal")

    def accepts(self, attachment: Attachment) -> bool:
        return attachment.media_type.startswith("image/")

    def open(self, workspace: Path, run_id: int) -> "RehearsalSession":
        return RehearsalSession(self.mishaps, workspace, f"rehearsal-{run_id}")


@dataclass(slots=True)
class RehearsalSession:
    mishaps: frozenset[str]
    workspace: Path
    session_id: str | None
    model: str = "rehearsal-1"
    _phase: str = "ask"
    _played: set[tuple[str, str]] = field(default_factory=set)
    _history: int = 0

    def exact(self, messages: Messages) -> Messages:
        return messages

    def launch_command(self, messages: Messages) -> str:
        return ""

    def send(self, messages: Messages) -> Reply:
        if match := _PHASE.search(messages.user):
            self._phase = match[1]
        tools = self._work(messages.user)
        sent = len(messages.system) + len(messages.user) + self._history
        text = self._answer(messages)
        self._history = sent + len(text)
        return Reply(
            text,
            error="the rehearsal was told to fail" if "fail" in self.mishaps else "",
            model=self.model,
            session_id=self.session_id,
            input_tokens=sent // 4,  # about four characters a token
            output_tokens=len(text) // 4,
            tool_calls=tools,
        )

    def close(self) -> None:
        pass

    def _work(self, message: str) -> tuple[ToolCall, ...]:
        """Read up to three files of the context folder, then write this phase's file."""
        calls = []
        if match := _CONTEXT.search(message):
            folder = Path(match[1])
            names = sorted(entry.name for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False))
            calls += [_read(folder / name) for name in names[:3]]
        if self._phase != "review":
            calls.append(self._write(f"{self._phase}.txt", "draft" if self._mishap("check") else "done"))
        return tuple(calls)

    def _write(self, name: str, text: str) -> ToolCall:
        (self.workspace / name).write_text(text + "\n")
        return ToolCall("write", json.dumps({"path": name, "content": text}), f"wrote {name}", len(name) + 6)

    def _answer(self, messages: Messages) -> str:
        if self._mishap("parse"):
            return "I have done it, and here is what I found: everything is in order."
        answers: dict[str, dict[str, object]] = {
            "plan": {"summary": "A plan in three steps.", "steps": ["read the request", "write the file", "check it"]},
            "build": {"summary": "The file is written.", "files": ["build.txt"]},
            "review": {"summary": "The work does what was asked.", "approved": True, "remarks": []},
        }
        return json.dumps(answers.get(self._phase, {"answer": _echo(messages.user)}), ensure_ascii=False)

    def _mishap(self, name: str) -> bool:
        """Does this mishap happen now? Once in a phase."""
        if name not in self.mishaps or (name, self._phase) in self._played:
            return False
        self._played.add((name, self._phase))
        return True


def _echo(message: str) -> str:
    return f"Read a message of {len(message)} characters."


def _read(path: Path) -> ToolCall:
    arguments = json.dumps({"path": str(path)})
    try:
        with path.open("rb") as file:
            data = file.read(_READ_LIMIT)
    except OSError as error:
        return ToolCall("read", arguments, str(error.strerror), is_error=True)
    return ToolCall("read", arguments, data.decode("utf-8", "replace"), len(data))
