"""The README says what the code does: settings, commands, pages, options, and the example it invites you to run."""

import os
import re
import subprocess
import sys
import tomllib
from argparse import ArgumentParser
from pathlib import Path

import pytest
import redis
from django.contrib.auth.models import User
from django.core.management import get_commands, load_command_class
from django.test import Client
from django.urls import Resolver404, resolve

from agentlab.common.context import VERSION
from capture.buffer import TurnBuffer
from capture.knowledge import read_knowledge

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.S)


def section(title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", README, re.M | re.S)
    assert found, title
    return found[1]


def first_cells(text: str) -> set[str]:
    """Everything in backticks in the first column of the section's tables."""
    return {code for row in re.findall(r"^\| ([^|]+) \|", text, re.M) for code in re.findall(r"`([^`]+)`", row)}


def test_every_setting_is_in_the_table_and_nothing_else() -> None:  # SF-3
    source = (ROOT / "agentlab" / "settings.py").read_text() + (ROOT / "agentlab" / "local.py").read_text()
    read = set(re.findall(r'env\.\w+\(\s*"(\w+)"', source)) | set(re.findall(r'^STATE = "(\w+)"', source, re.M))
    assert first_cells(section("Settings")) == read


def options_of(parser: ArgumentParser) -> set[str]:
    """Its options, and those of its subcommands."""
    own = {option for action in parser._actions for option in action.option_strings}
    inner = [action.choices.values() for action in parser._actions if isinstance(action.choices, dict)]
    return own.union(*(options_of(command) for commands in inner for command in commands))


def test_every_command_of_ours_is_there_with_options_that_it_has() -> None:
    ours = {name for name, app in get_commands().items() if app.split(".")[0] in {"agentlab", "capture", "factory"}}
    lines = re.findall(r"manage\.py (\w+)([^`\n]*)", README)
    assert ours <= {name for name, _ in lines}
    for name, rest in lines:
        assert name in get_commands(), name
        parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
        assert set(re.findall(r"(?<= )--[a-z-]+", rest)) <= options_of(parser), name


def test_the_options_of_up_are_its_own() -> None:
    parser = load_command_class("agentlab", "up").create_parser("manage.py", "up")
    django_own = {"--version", "--verbosity", "--settings", "--pythonpath", "--traceback", "--no-color"}
    own = {option for action in parser._actions for option in action.option_strings if option.startswith("--")}
    documented = {code.split()[0] for code in first_cells(section("Two commands")) if code.startswith("--")}
    assert documented == own - django_own - {"--help", "--force-color", "--skip-checks"}


def test_every_page_is_there() -> None:
    for page in first_cells(section("Pages")):
        try:
            resolve(page)
        except Resolver404:
            pytest.fail(f"{page} is in the README and nowhere else")


@pytest.mark.django_db
def test_every_room_has_its_page_in_the_table(client: Client) -> None:
    client.force_login(User.objects.create_user("operator", is_staff=True))
    shown = client.get("/").context["navigation"]
    assert len(shown) > 4
    assert {link.href for link in shown} <= first_cells(section("Pages"))


def test_every_make_target_is_there() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    named = set(re.findall(r"(?:`|^|AGENT\S+ )make ([a-z]+)\b", README + (ROOT / "CONTRIBUTING.md").read_text(), re.M))
    assert targets - {"help"} <= named
    assert named <= targets


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text()):
        assert (ROOT / target).exists(), target


@pytest.mark.django_db
def test_the_example_captures_a_turn_from_anywhere_and_its_page_says_what_changed(  # CAP-1, CAP-6, VW-3
    client: Client, capture_redis: redis.Redis, capture_redis_server: str, tmp_path: Path
) -> None:
    env = {**os.environ, "AGENT_CAPTURE_REDIS_URL": capture_redis_server, "PYTHONPATH": str(ROOT)}
    env.pop("DJANGO_SETTINGS_MODULE", None)  # it must not need Django
    (tmp_path / "mine.py").write_text("import sys; sys.modules['django'] = None\n" + EXAMPLES[0])
    done = subprocess.run([sys.executable, "mine.py"], cwd=tmp_path, env=env, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    (turn,) = TurnBuffer(capture_redis).hand_turns("my-table", 1, agent_id="my-agent")
    assert turn.prompt.text == "You are a careful player.\nQuestion: Raise to what? 60 at most.\nNotes: Nit raised"
    assert read_knowledge(turn.knowledge or b"") == {"question": "Raise to what? 60 at most.", "notes": ["Nit raised"]}
    assert turn.decision == [{"type": "action", "action": "raise", "amount": 60, "apiKey": "[redacted]"}]
    where = re.search(r"table (\S+), hand (\d+)", done.stdout.decode())
    assert where
    client.force_login(User.objects.create_user("operator", is_staff=True))
    page = client.get("/agent-capture", {"table": where[1], "hand": where[2]}).content.decode()
    assert "asked for <strong>120</strong>; <strong>60</strong> reached the table" in page
    assert ">CLAMPED<" in page


def test_the_example_says_nothing_of_success_where_nothing_was_recorded(tmp_path: Path) -> None:  # CAP-10
    env = {**os.environ, "AGENT_CAPTURE_REDIS_URL": "redis://127.0.0.1:9", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", EXAMPLES[0]], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "turns are not recorded: Redis is down\n")


@pytest.mark.django_db(transaction=True)
def test_the_second_example_puts_a_hand_in_the_lists_and_says_what_a_model_failed_of(  # CAP-2, VW-1, VW-2
    client: Client,
    capture_redis: redis.Redis,
    capture_redis_server: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("AGENT_CAPTURE_REDIS_URL", capture_redis_server)
    monkeypatch.chdir(tmp_path)
    exec(EXAMPLES[1], {})
    assert capsys.readouterr().out == "Recorded, and in the list of hands: my-table:2\n"
    client.force_login(User.objects.create_user("operator", is_staff=True))
    listed = client.get("/agent-capture").content.decode()
    assert "my-table:2" in listed
    assert "1 FALLBACK" in listed
    page = client.get("/agent-capture", {"table": "my-table", "hand": 2}).content.decode()
    assert "the model timed out" in page
    assert "raises to 60" in page


def test_a_program_that_is_no_command_finds_the_database_of_the_site(tmp_path: Path) -> None:
    begin = "from agentlab.local import use_django; use_django()\n"
    begin += "from django.conf import settings; print(settings.DATABASES['default']['NAME'])"
    ours = {"SECRET_KEY", "DATABASE_URL", "DJANGO_SETTINGS_MODULE"}
    env = {name: value for name, value in os.environ.items() if name not in ours}
    env |= {"AGENTLAB_STATE_DIR": str(tmp_path / "state"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", begin], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{tmp_path / 'state' / 'agentlab.sqlite3'}\n", "")


def test_the_version_under_every_page_is_the_projects() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == VERSION
