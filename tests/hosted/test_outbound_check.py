import re
import subprocess
import sys
from pathlib import Path

import pytest

from agentlab.hosted.outbound_check import DOOR_FILE, HOSTED, PROJECT, TABLE_SIDE, check, violations

RULE_BREAKER = Path(__file__).parents[1] / "data" / "outbound" / "violations.py"


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "agentlab.hosted.outbound_check", *map(str, arguments)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
    )


def test_every_way_past_the_door_is_refused_and_the_door_itself_is_not():
    # HA-7
    source = RULE_BREAKER.read_text()
    expected = {number for number, line in enumerate(source.split("\n"), 1) if line.endswith("# refused")}
    assert {violation.line for violation in violations(source, door_file=True)} == expected


def test_the_project_sends_through_its_one_door():
    # HA-7
    result = run()
    assert (result.returncode, result.stdout) == (0, "")


def test_a_raw_send_planted_in_the_agent_fails_the_check(tmp_path):
    # HA-7
    source = DOOR_FILE.read_text()
    assert violations(source, door_file=True) == []
    lines = source.split("\n")
    place = next(number for number, line in enumerate(lines) if "async for message in self.__socket" in line)
    indent = re.match(" *", lines[place])[0]
    for planted in (
        'await self.__socket.send("{}")',
        "leak(self.__socket)",
        'getattr(self, "x")',
        "x = connect(self.url)",
    ):
        broken = "\n".join([*lines[:place], indent + planted, *lines[place:]])
        assert {violation.line for violation in violations(broken, door_file=True)} == {place + 1}, planted


@pytest.mark.parametrize("path", sorted(HOSTED.glob("*.py")), ids=lambda path: path.name)
def test_a_raw_send_planted_anywhere_on_the_agents_side_fails_the_check(path):
    # HA-7
    planted = path.read_text() + "\n\nasync def planted(connection):\n    await connection.send('{}')\n"
    found = violations(planted, agent_side=path not in TABLE_SIDE, door_file=path == DOOR_FILE)
    assert bool(found) == (path not in TABLE_SIDE)


def test_no_other_module_of_any_room_may_open_a_connection_to_a_table():
    # HA-7
    source = "from websockets.asyncio.client import connect\n"
    assert violations(source, agent_side=False)
    assert not violations("from websockets.asyncio.server import serve\n", agent_side=False)
    assert not violations("from websockets.exceptions import ConnectionClosed\n", agent_side=False)


def test_the_modules_of_the_table_exist_and_do_not_import_the_agent():
    # HA-7
    for path in TABLE_SIDE:
        assert "agentlab.hosted.agent " not in path.read_text()
        assert check(path) == []


def test_the_command_names_file_line_and_reason_and_fails():
    # HA-7
    result = run(HOSTED / "agent.py", RULE_BREAKER)
    assert result.returncode == 1
    assert re.match(rf"{re.escape(str(RULE_BREAKER))}:\d+: .+", result.stdout)


def test_the_check_runs_with_lint():
    # HA-7
    assert "agentlab.hosted.outbound_check" in (PROJECT / "Makefile").read_text()
