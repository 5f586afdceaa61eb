"""Agents and a real table: what one side sends is what the other receives, and a killed agent comes back."""

import asyncio
import itertools
import json
import os
import re
import signal
from collections import Counter

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db import connection

from agentlab.agents.models import InferenceCharge
from agentlab.hosted.agent import HostedAgent
from agentlab.hosted.agent_process import AgentOrder, AgentProcess
from agentlab.hosted.crew import Crew, end
from agentlab.hosted.deployments import seat, seat_newest
from agentlab.hosted.frames import encode
from agentlab.hosted.notes import memory_gap
from agentlab.hosted.table import Table
from agentlab.hosted.table_config import TableConfig
from agentlab.hosted.tokens import TokenIssuer
from capture.buffer import TurnBuffer
from capture.knowledge import read_knowledge
from tests.hosted.openai_server import completion, delta, endpoint, head, says, streams
from tests.hosted.plays import environment
from tests.hosted.tables import answers, beside, publish, until

pytestmark = pytest.mark.django_db(transaction=True)

AGENTS = ["rocky", "nit", "bluffy"]


def table_for(key, journal=None, **options):
    config = TableConfig(
        table_id="t-1", public_key=TokenIssuer(key).public_key, wait_for=len(AGENTS), seed=3, **options
    )
    return Table(config, journal=journal)


def test_the_frames_that_the_table_received_are_those_that_went_through_the_door(capture_redis, tmp_path, monkeypatch):
    # HA-7
    said = {agent: [] for agent in AGENTS}
    received = {agent: [] for agent in AGENTS}
    door = HostedAgent.send_to_table

    async def watched(self, frame):
        said[self.agent_id].append(encode(frame))
        await door(self, frame)

    monkeypatch.setattr(HostedAgent, "send_to_table", watched)
    for agent in AGENTS:
        publish(agent)
    key = Ed25519PrivateKey.generate()

    async def run():
        crew = Crew(issuer=TokenIssuer(key))
        async with table_for(key, journal=lambda agent, frame: received[agent].append(frame)) as table:
            playing = [asyncio.create_task(crew.agent(agent, "t-1", table.url).run()) for agent in AGENTS]
            await table.play(8)
            await end(playing)
        return await crew.close()

    report = asyncio.run(run())
    without_tokens = {
        agent: [{name: value for name, value in json.loads(frame).items() if name != "agentToken"} for frame in frames]
        for agent, frames in said.items()
    }
    assert without_tokens == received
    acted = sum(frame["type"] == "action" for frames in received.values() for frame in frames)
    assert acted == report.turns == report.captured


def child_environment(tmp_path, capture_redis_server):
    """A child of this test, on this test's own database and Redis."""
    database = connection.settings_dict
    if connection.vendor == "sqlite":
        url = f"sqlite:///{database['NAME']}"
    else:
        place = f"{database['HOST'] or '127.0.0.1'}:{database['PORT'] or 5432}"
        url = f"postgresql://{database['USER']}:{database['PASSWORD']}@{place}/{database['NAME']}"
    return environment(
        tmp_path,
        SECRET_KEY="for tests alone",
        DATABASE_URL=url,
        AGENT_CAPTURE_REDIS_URL=capture_redis_server,
        AGENT_LEDGER_SPOOL=str(tmp_path / "spool"),
        DJANGO_SETTINGS_MODULE="agentlab.settings",
    )


def test_an_agent_killed_in_mid_hand_and_started_again_plays_on_with_an_empty_log(
    capture_redis, capture_redis_server, tmp_path
):
    # HA-2, VW-9, SF-5
    model = answers(tmp_path / "a", '{"action": "call"}')
    for agent in AGENTS:
        publish(agent, model=model)
    key = Ed25519PrivateKey.generate()

    async def run():
        acted = []
        async with table_for(key, journal=lambda agent, frame: acted.append((agent, frame))) as table:
            others = Crew(issuer=TokenIssuer(key))
            playing = [asyncio.create_task(others.agent(agent, "t-1", table.url).run()) for agent in AGENTS[1:]]
            order = AgentOrder(
                agent_ids=["rocky"],
                table_id="t-1",
                url=table.url,
                private_key=key.private_bytes_raw().hex(),
                min_turn_ms=500,
            )
            victim = AgentProcess(order, environment=child_environment(tmp_path, capture_redis_server))
            running = asyncio.create_task(victim.run())
            game = asyncio.create_task(table.play(2))

            def in_second_hand():
                return [frame for agent, frame in acted if agent == "rocky" and frame.get("handNumber") == 2]

            await until(in_second_hand, seconds=60)
            first_pid = victim.pid
            os.kill(first_pid, signal.SIGKILL)
            async with asyncio.timeout(60):
                await game
            assert victim.pid != first_pid
            await victim.stop(running)
            await end(playing)
        await others.close()
        return table.report

    report = asyncio.run(run())
    assert report.hands == 2
    assert not report.forced
    turns = TurnBuffer(capture_redis).hand_turns("t-1", 2, agent_id="rocky")
    after = next(turn for turn in turns if read_knowledge(turn.knowledge)["state"]["street"] == "flop")
    known = read_knowledge(after.knowledge)
    assert (known["action_log"], known["hand_history"]) == ([], [])
    assert known["state"]["pot"] > 150
    assert after.action in {"check", "call"}
    assert "reconnected" in memory_gap(after).text


def test_a_version_published_while_it_plays_is_seated_from_the_next_hand(capture_redis, tmp_path):
    # HA-11
    first = {agent: publish(agent, model=answers(tmp_path / agent, '{"action": "call"}')) for agent in AGENTS}
    for agent in AGENTS:
        seat(agent, "t-1")
    key = Ed25519PrivateKey.generate()

    async def run():
        crew = Crew(issuer=TokenIssuer(key))
        table = table_for(key)

        async def deployments(hand, agents):
            if hand == 3:
                await beside(publish, "rocky", strategy="Otherwise.", model=f"answers:{tmp_path / 'rocky'}")
            return await beside(seat_newest, "t-1", agents)

        table._deployments = deployments
        async with table:
            playing = [asyncio.create_task(crew.agent(agent, "t-1", table.url).run()) for agent in AGENTS]
            await table.play(4)
            await end(playing)
        return await crew.close()

    report = asyncio.run(run())
    buffer = TurnBuffer(capture_redis)
    turns = {hand: buffer.hand_turns("t-1", hand, agent_id="rocky") for hand in (1, 2, 3, 4)}
    versions = {hand: {turn.agent_version_id for turn in played} for hand, played in turns.items()}
    assert versions == {1: {first["rocky"]}, 2: {first["rocky"]}, 3: {"rocky-v2"}, 4: {"rocky-v2"}}
    assert len(report.envelopes) == 2  # two texts: nit and bluffy were published with the same words


CARD = re.compile(r"\b[2-9TJQKA][cdhs]\b")


def test_in_a_whole_hand_nobody_knows_or_is_told_anothers_cards(capture_redis, tmp_path):
    # HA-9, RD-3
    model = answers(tmp_path / "a", '{"action": "call"}')
    for agent in AGENTS:
        publish(agent, model=model)
    key = Ed25519PrivateKey.generate()

    async def run():
        crew = Crew(issuer=TokenIssuer(key))
        async with table_for(key) as table:
            playing = [asyncio.create_task(crew.agent(agent, "t-1", table.url).run()) for agent in AGENTS]
            await table.play(1)
            await end(playing)
        await crew.close()

    asyncio.run(run())
    turns = TurnBuffer(capture_redis).hand_all_turns("t-1", 1)
    held = {agent: set(read_knowledge(own[0].knowledge)["state"]["holeCards"]) for agent, own in turns.items()}
    assert sum(map(len, held.values())) == 6
    assert sum(map(len, turns.values())) == 12  # everybody checks to the river
    for agent, own in turns.items():
        others = set().union(*(cards for other, cards in held.items() if other != agent))
        for turn in own:
            known = set(CARD.findall(json.dumps(read_knowledge(turn.knowledge)) + turn.prompt.text))
            assert held[agent] <= known
            assert not known & others


def badly_behaved():
    """An endpoint that answers well and badly in turn; how often each way was taken."""
    call = '{"action": "call"}'
    tool = [{"id": "t", "type": "function", "function": {"name": "call", "arguments": "{}"}}]

    async def silent(write):
        await asyncio.sleep(60)

    async def cut(write):
        await write(head("200 OK", "application/json", "Content-Length: 500") + b'{"choices"')

    ways = {
        "json": says(completion(call)),
        "stream": streams(delta(content='{"action"'), delta(content=': "call"}')),
        "tool call": says(completion(None, tool_calls=tool)),
        "reasoning alone": says(completion("", reasoning_content=call)),
        "cut-off json": says(completion('{"action": "call", "why": "because')),
        "wrong type": says(completion(call), content_type="text/html"),
        "empty": says(completion("")),
        "prose": says(completion("This is a clear fold.")),
        "error": says({"error": "x"}, status="500 Internal Server Error"),
        "rate limit": says({"error": "x"}, status="429 Too Many Requests"),
        "no json": says(b"<html>", content_type="text/html"),
        "cut": cut,
        "silent": silent,
    }
    taken = Counter()
    turns = itertools.cycle(ways)

    async def answer(write):
        taken[way := next(turns)] += 1
        await ways[way](write)

    return answer, taken


def test_an_endpoint_that_misbehaves_in_every_way_never_sticks_the_table(capture_redis, settings):
    # HA-5, HA-6
    for agent in AGENTS:
        publish(agent)
    key = Ed25519PrivateKey.generate()
    answer, taken = badly_behaved()

    async def run():
        async with endpoint(answer) as server:
            settings.OPENAI_BASE_URL = server.url
            crew = Crew(issuer=TokenIssuer(key), model="openai:tiny")
            async with table_for(key, turn_ms=1500) as table:
                playing = [asyncio.create_task(crew.agent(agent, "t-1", table.url).run()) for agent in AGENTS]
                await table.play(6)
                await end(playing)
            return table.report, await crew.close()

    played, counted = asyncio.run(run())
    assert played.hands == 6
    assert not played.forced  # every agent answered in time itself
    assert not played.refused
    assert len(taken) == 13
    assert counted.turns == played.turns == counted.captured + counted.fallbacks
    failing = ("empty", "prose", "error", "rate limit", "no json", "cut", "silent")
    assert counted.fallbacks == sum(taken[way] for way in failing)
    reasons = set(InferenceCharge.objects.filter(is_fallback=True).values_list("fallback_reason", flat=True))
    assert reasons == {
        "the answer was empty",
        "no choice could be read in the answer",
        "model: the endpoint answered 500",
        "model: rate limited (429)",
        "model: the endpoint's answer is not a completion",
        "model: the connection broke",
        "model: timed out",
    }
