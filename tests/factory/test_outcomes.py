"""What is stored of a tool's output, and what a check may do."""

import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from factory.checks import OUTPUT_LIMIT as CHECK_LIMIT
from factory.checks import run_check
from factory.outcomes import MASK, OUTPUT_LIMIT, ToolCall, storable


def test_our_own_secrets_are_masked_in_a_tools_output_and_counted() -> None:  # FA-13 FA-14
    call = storable(ToolCall("bash", "env", "KEY=our-secret-key and our-secret-key again"), ["our-secret-key", "short"])
    assert (call.output, call.masked) == (f"KEY={MASK} and {MASK} again", 2)
    assert call.output_bytes == len("KEY=our-secret-key and our-secret-key again")


def test_a_short_secret_is_not_searched_for_since_it_would_be_found_everywhere() -> None:  # FA-14
    assert storable(ToolCall("bash", "", "root of all"), ["root"]).output == "root of all"


def test_arguments_stay_as_the_agent_wrote_them() -> None:  # FA-13
    assert storable(ToolCall("bash", "echo our-secret-key", "x"), ["our-secret-key"]).arguments == "echo our-secret-key"


def test_a_long_output_is_cut_and_its_size_remembered() -> None:  # FA-13
    call = storable(ToolCall("read", "", "é" * (OUTPUT_LIMIT + 1)), [])
    assert (len(call.output or ""), call.output_bytes) == (OUTPUT_LIMIT, 2 * (OUTPUT_LIMIT + 1))


def test_no_result_stays_no_result() -> None:  # FA-13
    assert storable(ToolCall("bash"), ["our-secret-key"]).output is None


def test_a_check_that_does_not_end_is_ended_with_all_it_started(tmp_path: Path) -> None:  # FA-2
    os.mkfifo(tmp_path / "pid")
    pids = os.open(tmp_path / "pid", os.O_RDONLY | os.O_NONBLOCK)
    result = run_check("echo begun; sleep 600 & echo $! > pid; wait", tmp_path, timeout=2)
    assert (result.passed, result.summary, result.output) == (False, "check did not end within 2 s", "begun")
    child = int(os.read(pids, 100))
    os.close(pids)
    assert _is_gone(child)


def test_the_end_of_a_long_output_goes_back_to_the_agent(tmp_path: Path) -> None:  # FA-2
    result = run_check("seq 1 5000; echo the last line; exit 4", tmp_path)
    assert result.summary == "check failed (exit 4)"
    assert result.output.endswith("the last line")
    assert len(result.output) < CHECK_LIMIT + 100
    assert result.output.startswith("… (the last 8 KB of 23 KB)")


def test_what_a_check_prints_is_kept_in_no_file_however_much_it_is(tmp_path: Path) -> None:  # FA-2 SF-4
    size = f'{sys.executable} -c "import os; print(os.fstat(1).st_size)"'
    result = run_check(f"yes | head -c 9000000; {size}", tmp_path)
    assert result.output.startswith("… (the last 8 KB of 8789 KB)")
    assert int(result.output.split()[-1]) < 1_000_000


def test_what_a_check_leaves_running_out_of_reach_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # FA-2
    monkeypatch.setattr("factory.checks.LAST_WORDS_SECONDS", 0.2)
    result = run_check("setsid sleep 30 & echo $! > pid; echo done", tmp_path)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert (result.passed, result.output) == (True, "done")


def test_output_that_is_not_text_does_no_harm(tmp_path: Path) -> None:  # SF-4
    assert run_check(r"printf '\377\000x'; false", tmp_path).output == "\ufffd\x00x"


def test_a_check_works_in_the_workspace(tmp_path: Path) -> None:  # FA-2
    assert run_check("pwd; true", tmp_path).output == str(tmp_path)


def _is_gone(pid: int) -> bool:
    """Whether a process that was sent its end has met it: that takes the kernel a moment."""
    try:
        process = psutil.Process(pid)
        process.wait(10)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    return True
