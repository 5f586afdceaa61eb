"""Mutated answers, frames and records for some minutes: each is read, or refused in the way that its reader promises.

    python -m tests.faults.fuzz --minutes 10 --seed 1

Starts from real answers and whole frames and records, and cuts, repeats, swaps and splices them. Anything but the
promised error, or an answer that takes longer than ten seconds to read, is printed with its input; exit code 1.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from agentlab.hosted.frames import FrameError, read_to_agent, read_to_table
from capture.choice import parse_choice
from capture.knowledge import read_knowledge
from capture.prompt import Prompt
from capture.turns import Turn, TurnError, TurnKey, decode_turn, encode_turn, freeze_decision, read_record

ANSWERS = Path(__file__).parents[1] / "data" / "responses"
SPLICES = [
    b'{"action":',
    b"```json",
    b"<think>",
    b"</think>",
    b'"raise"',
    b"1e999",
    b"\x00",
    b"\xff",
    b"{",
    b"[",
    b'"',
    b"\\u",
]
FRAMES = [
    b'{"type":"action","handNumber":1,"actionIndex":2,"action":"raise","amount":200}',
    b'{"type":"enter","agentToken":"a.b"}',
    b'{"type":"your_turn","legalActions":["fold","call"],"chipRange":{"min":1,"max":2},"turnEndsAt":1}',
    b'{"type":"rejected","handNumber":1,"actionIndex":2,"reason":"late"}',
    b'{"type":"player_action","handNumber":1,"actionIndex":1,"seat":1,"agentId":"a","action":"call","amount":null}',
]


def mutated(seed: bytes, others: list[bytes], chance: random.Random) -> bytes:
    data = bytearray(seed)
    for _ in range(chance.choice([1, 1, 2, 4, 16])):
        at, end = sorted(chance.randint(0, len(data)) for _ in range(2))
        end = min(end, at + 200)
        match chance.randrange(6):
            case 0:
                del data[at:end]
            case 1:
                data[at:at] = chance.choice(SPLICES)
            case 2:
                data[at:at] = data[at:end] * chance.choice([1, 2, 50])
            case 3:
                data[at:end] = bytes(chance.randrange(256) for _ in range(end - at))
            case 4:
                other = chance.choice(others)
                data[at:at] = other[: chance.randint(0, len(other))]
            case _:
                del data[at:]
    return bytes(data[:200_000])


def records() -> list[bytes]:
    said = {"reasoning": "why", "action": "raise", "amount": 5, "asked_amount": 5, "knowledge": b"\x81\xa1a\x01"}
    sent = [{"type": "action", "action": "raise"}]
    turn = Turn(TurnKey("a", "t", 1, 2), Prompt("envelope", "remainder"), "response", decision=sent, **said)
    return [encode_turn(turn, freeze_decision(turn))[0]]


def read_choice(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    parse_choice(text, reasoning=text[::2], tool_call={"name": text[:20], "args": {"amount": text[20:30]}})
    parse_choice("", reasoning=text)


def read_turn(data: bytes) -> None:
    decode_turn(read_record(data), "envelope")


def corpus() -> list[bytes]:
    lines = [
        line for path in sorted(ANSWERS.glob("*_*.jsonl")) for line in path.read_text(encoding="utf-8").split("\n")
    ]
    answers = [json.loads(line) for line in lines if line]
    return [text.encode() for answer in answers if (text := answer.get("text") or answer.get("reasoning_channel"))]


def fuzz(minutes: float, seed: int) -> bool:
    chance = random.Random(seed)
    targets: list[tuple[str, list[bytes], Callable[[bytes], object], tuple[type[Exception], ...]]] = [
        ("choice", corpus(), read_choice, ()),
        ("frame from an agent", FRAMES, read_to_table, (FrameError,)),
        ("frame from a table", FRAMES, read_to_agent, (FrameError,)),
        ("record", records(), read_turn, (TurnError,)),
        ("knowledge", [b"\x81\xa1a\x93\x01\xc0\xcb\x00\x00\x00\x00\x00\x00\x00\x00"], read_knowledge, (ValueError,)),
    ]
    tried: Counter[str] = Counter()
    faults = 0
    deadline = time.monotonic() + 60 * minutes
    while time.monotonic() < deadline and faults < 20:
        name, seeds, reader, promised = chance.choice(targets)
        data = mutated(chance.choice(seeds), seeds, chance)
        began = time.monotonic()
        tried[name] += 1
        try:
            reader(data)
        except promised:
            pass
        except Exception as fault:
            faults += 1
            print(f"{name}: {type(fault).__name__}: {str(fault)[:200]}\n  {data[:2000]!r}", flush=True)
        if time.monotonic() - began > 10:
            faults += 1
            print(f"{name}: took {time.monotonic() - began:.0f} s\n  {data[:2000]!r}", flush=True)
    print(f"{dict(tried)}: {faults} faults")
    return not faults


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sys.exit(0 if fuzz(options.minutes, options.seed) else 1)
