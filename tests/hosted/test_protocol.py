"""The protocol as the README tells it: enough for an agent in any language."""

import asyncio
import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from websockets.asyncio.client import connect

from agentlab.hosted import door, frames, reveal
from agentlab.hosted.table import Table
from agentlab.hosted.table_config import TableConfig, now_ms

HOSTED = Path(door.__file__).parent
FRAMES = [
    *(frames.Enter, frames.Sit, frames.Stand, frames.PostBlind, frames.Action),
    *(frames.GameState, frames.YourTurn, frames.PlayerAction, frames.HandResult, frames.Rejected),
]


def told() -> str:
    return (HOSTED / "README.md").read_text().partition("### The protocol")[2].partition("### House rules")[0]


def fields(struct: type[msgspec.Struct]) -> Iterator[str]:
    """The names on the wire, those of the parts included."""
    for field in msgspec.structs.fields(struct):
        yield field.encode_name
        for name in re.findall(r"(SeatView|PotView|PotResult|SeatResult|ChipRange)", str(field.type)):
            yield from fields(getattr(frames, name))


@pytest.mark.parametrize("struct", FRAMES, ids=lambda struct: struct.__struct_config__.tag)
def test_every_frame_and_field_is_told(struct: Any) -> None:  # HA-1
    text = told()
    row = next(line for line in text.splitlines() if line.startswith(f"| `{struct.__struct_config__.tag}` |"))
    for name in fields(struct):
        assert f"`{name}`" in row, name


def test_every_reason_is_told() -> None:  # HA-9
    source = "".join((HOSTED / name).read_text() for name in ("door.py", "frames.py", "turns.py"))
    codes = set(re.findall(r'f?"([a-z_]+): [a-z{]', source)) | set(re.findall(r'FrameError\("([a-z_]+)"', source))
    assert codes >= {"late", "doubled", "out_of_turn", "malformed", "bad_token", "flooding"}
    assert {code for code in codes if f"`{code}`" not in told()} == set()


def test_what_is_private_is_told() -> None:  # HA-9
    private = told().partition("Only for the viewer:")[2].partition("\n")[0]
    for name in reveal.VIEWER_PRIVATE:
        first, *rest = name.split("_")
        assert f"`{first}{''.join(word.title() for word in rest)}`" in private


# An agent that knows nothing but the README -------------------------------------------------------------------
def text_of(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(key: Ed25519PrivateKey, agent_id: str) -> str:
    claims = {"agentId": agent_id, "deploymentId": 1, "tableId": "t9", "nonce": agent_id}
    payload = json.dumps({**claims, "issuedAt": now_ms(), "expiresAt": now_ms() + 60_000}).encode()
    return f"{text_of(payload)}.{text_of(key.sign(b'agentlab table token 1' + bytes([10]) + payload))}"


async def stranger(url: str, key: Ed25519PrivateKey, agent_id: str) -> list[dict[str, Any]]:
    """Plays with nothing but JSON; gives the results that it was told."""
    results, state = [], {}
    async with connect(url, proxy=None) as socket:
        for frame in ({"type": "enter", "agentToken": token(key, agent_id)}, {"type": "sit"}, {"type": "post_blind"}):
            await socket.send(json.dumps(frame))
        async for message in socket:
            said = json.loads(message)
            if said["type"] == "game_state":
                state = said
            elif said["type"] == "hand_result":
                results.append(said)
            elif said["type"] == "your_turn":
                legal = said["legalActions"]
                answer: dict[str, Any] = {"action": "check" if "check" in legal else "call"}
                if "raise" in legal and state["handNumber"] == 2:
                    answer = {"action": "raise", "amount": said["chipRange"]["min"]}
                named = {"handNumber": state["handNumber"], "actionIndex": state["actionIndex"]}
                await socket.send(json.dumps({"type": "action", **named, **answer}))
            assert said["type"] != "rejected", said
    return results


def test_an_agent_written_from_the_readme_alone_plays() -> None:  # HA-1
    key = Ed25519PrivateKey.generate()
    config = TableConfig(table_id="t9", public_key=key.public_key().public_bytes_raw().hex(), wait_for=3, seed=2)

    async def scenario() -> list[list[dict[str, Any]]]:
        async with Table(config) as table:
            playing = [asyncio.create_task(stranger(table.url, key, f"stranger-{number}")) for number in range(3)]
            await table.play(3)
            assert table.report.refused == {}
        return await asyncio.gather(*playing)

    seen = asyncio.run(scenario())
    assert seen[0] == seen[1] == seen[2]
    assert [result["handNumber"] for result in seen[0]] == [1, 2, 3]
    assert all(sum(seat["net"] for seat in result["seats"]) == 0 for result in seen[0])
