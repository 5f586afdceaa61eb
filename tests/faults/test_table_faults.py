"""A table's process killed, its holder killed, its database cut: no hand number comes twice, nothing is left over."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import psutil
import pytest
from django.db import connection, connections

from agentlab.hosted.frames import GameState, HandResult
from agentlab.hosted.hand_numbers import open_table, reserve_hand
from agentlab.hosted.models import HostedTable
from agentlab.hosted.table_process import Order, TableFailed, TableProcess
from tests.conftest import SHARED_DATA
from tests.faults.proxy import Proxy
from tests.faults.test_ledger_faults import database_url
from tests.hosted.sockets import Player, Room, plays_safely

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE = 30.0


@pytest.fixture
def wire() -> Iterator[Proxy]:
    """The way to PostgreSQL, which a test can cut."""
    if connection.vendor != "postgresql":
        pytest.skip("a database over TCP: run with DATABASE_URL naming a PostgreSQL")
    settings = connection.settings_dict
    proxy = Proxy((settings["HOST"] or "127.0.0.1", int(settings["PORT"] or 5432)))
    yield proxy
    proxy.close()


def environment(proxy: Proxy | None = None) -> dict[str, str]:
    """A child's: the test's database in place of the site's."""
    return {**os.environ, "DJANGO_SETTINGS_MODULE": "agentlab.settings", "DATABASE_URL": database_url(proxy)}


def order_for(room: Room, **other: object) -> Order:
    return msgspec.convert({"table": msgspec.to_builtins(room.config), **other}, Order)


async def seat(table: TableProcess, room: Room) -> tuple[list[Player], "list[asyncio.Task[None]]"]:
    """Two players who check and call, and their tasks."""
    room.table.url = table.url
    players = [await room.sit(f"agent-{number}") for number in range(2)]
    return players, [asyncio.create_task(plays_safely(player)) for player in players]


def hands_seen(player: Player) -> list[int]:
    return [frame.hand_number for frame in player.frames if isinstance(frame, HandResult)]


def test_a_table_plays_in_a_process_of_its_own_and_reports(tmp_path: Path) -> None:  # HA-9
    table_id, hands = open_table(), []

    async def scenario() -> None:
        room = Room(table_id=table_id)
        order = order_for(room, hands=5, journal=str(tmp_path / "journal"))
        async with room._sockets, TableProcess(order, on_hand=hands.append, environment=environment()) as table:
            players, playing = await seat(table, room)
            report = await table.finished()
            await asyncio.gather(*playing)
        assert (report.hands, report.last_hand_number, report.refused) == (5, 5, {})
        assert hands_seen(players[0]) == [1, 2, 3, 4, 5]

    asyncio.run(scenario())
    assert hands == [1, 2, 3, 4, 5]
    assert HostedTable.objects.get(id=table_id).last_hand_number == 5
    heard = [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()]
    assert heard[0] == {"agentId": "agent-0", "frame": {"type": "enter"}}
    assert {line["frame"]["type"] for line in heard} == {"enter", "sit", "post_blind", "action"}


def test_no_hand_number_comes_twice_after_a_kill() -> None:  # HA-9 SF-5
    table_id = open_table()

    async def until_killed() -> set[int]:
        """Plays three hands and a bit; every hand number that a player was shown."""
        room, third = Room(table_id=table_id), asyncio.Event()
        process = TableProcess(
            order_for(room), on_hand=lambda hands: third.set() if hands == 3 else None, environment=environment()
        )
        async with room._sockets, process as table:
            players, playing = await seat(table, room)
            async with asyncio.timeout(PATIENCE):
                await third.wait()
            os.kill(table.pid or 0, signal.SIGKILL)
            with pytest.raises(TableFailed, match="without a report"):
                await table.finished()
            await asyncio.gather(*playing)
        return {frame.hand_number for frame in players[0].frames if isinstance(frame, GameState)} - {0}

    lives = [asyncio.run(until_killed()) for _ in range(3)]
    assert [len(hands) >= 3 for hands in lives] == [True] * 3
    assert max(lives[0]) < min(lives[1]) <= max(lives[1]) < min(lives[2])


def test_a_table_ends_with_the_process_that_held_it() -> None:  # SF-5
    order = order_for(Room(table_id=open_table()))
    holder = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.table_holder", msgspec.json.encode(order).decode()],
        stdout=subprocess.PIPE,
        env=environment(),
    )
    assert holder.stdout
    table = psutil.Process(int(holder.stdout.readline()))
    holder.kill()
    holder.wait()
    holder.stdout.close()
    assert psutil.wait_procs([table], timeout=PATIENCE)[1] == []


def test_a_port_in_use_is_said_in_one_line() -> None:  # SF-4
    taken = socket.create_server(("127.0.0.1", 0))

    table_id = open_table()

    async def scenario() -> None:
        room = Room(table_id=table_id, port=taken.getsockname()[1])
        with pytest.raises(TableFailed, match=r"^the table cannot serve: [^\n]*in use$"):
            async with TableProcess(order_for(room), environment=environment()):
                pass

    with taken:
        asyncio.run(scenario())


def test_a_path_without_hands_is_said_in_one_line(tmp_path: Path) -> None:  # SF-4
    table_id = open_table()

    async def scenario() -> None:
        order = order_for(Room(table_id=table_id), deal=str(tmp_path))
        with pytest.raises(TableFailed, match="no PHH file"):
            async with TableProcess(order, environment=environment()):
                pass

    asyncio.run(scenario())


def test_a_process_deals_the_hands_of_a_folder(tmp_path: Path) -> None:  # HA-9
    for name in ("handhq_cash_08.phh", "pluribus_102_0.phh", "handhq_cash_09.phh"):
        (tmp_path / name).write_bytes((SHARED_DATA / "hands" / name).read_bytes())
    (tmp_path / "zz.phh").write_text("nothing")

    table_id = open_table()

    async def scenario() -> None:
        room = Room(table_id=table_id)
        order = order_for(room, deal=str(tmp_path))
        async with room._sockets, TableProcess(order, environment=environment()) as table:
            _, playing = await seat(table, room)
            report = await table.finished()
            await asyncio.gather(*playing)
        assert report.hands == 2
        assert report.skipped == {
            "pluribus_102_0.phh": "it has 6 seats, 2 are ready",
            "zz.phh": "not a TOML file in UTF-8",
        }

    asyncio.run(scenario())


def test_while_the_database_is_away_the_table_waits_and_then_goes_on(wire: Proxy) -> None:  # SF-5 HA-9
    table_id = open_table()

    async def scenario() -> list[int]:
        room, played, reached = Room(table_id=table_id), [0], asyncio.Event()
        process = TableProcess(
            order_for(room),
            on_hand=lambda hands: (played.append(hands), reached.set())[1],
            environment=environment(wire),
        )

        async def play_to(hands: int) -> None:
            async with asyncio.timeout(PATIENCE):
                while played[-1] < hands:
                    reached.clear()
                    await reached.wait()

        async with room._sockets, process as table:
            players, playing = await seat(table, room)
            await play_to(3)
            wire.cut()
            wire.mend()
            await play_to(played[-1] + 5)
            os.kill(table.pid or 0, signal.SIGTERM)
            assert (await table.finished()).hands >= 8
            await asyncio.gather(*playing)
        return hands_seen(players[0])

    seen = asyncio.run(scenario())
    assert seen == sorted(set(seen))


def test_numbers_reserved_at_once_are_all_different() -> None:  # HA-9
    table_id = open_table()

    def reserve(_: int) -> int:
        try:
            return reserve_hand(table_id)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as threads:
        numbers = list(threads.map(reserve, range(40)))
    assert sorted(numbers) == list(range(1, 41))


def test_every_opened_table_has_an_id_of_its_own() -> None:  # HA-9
    assert len({open_table() for _ in range(50)}) == 50


def test_a_table_that_was_never_opened_numbers_its_hands_too() -> None:  # HA-9
    assert [reserve_hand("by-hand"), reserve_hand("by-hand")] == [1, 2]
