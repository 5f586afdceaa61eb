"""`manage.py study`, as a person and as a script use it."""

import json
import os
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command

from agentlab.persona.models import StudyRun, TraceEvent

from .making import crowd, study, written

ROOT = Path(__file__).parent.parent.parent
FIRST = ROOT / "agentlab" / "persona" / "studies" / "first.yaml"


def _study(*words: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("study", *words, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def _ran(*words: str) -> dict:
    return json.loads(_study("run", *words, "--json")[0].splitlines()[-1])


@pytest.mark.django_db
class TestInProcess:
    def test_a_run_ends_with_its_facts_in_json(self) -> None:  # PE-3
        facts = _ran(str(FIRST))
        run = StudyRun.objects.get(pk=facts["study"])
        assert (facts["turns"], facts["events"]) == (168, TraceEvent.objects.filter(run=run).count())
        assert facts["trace_sha256"] == run.trace_sha256
        assert (facts["status"], facts["failed"]) == ("complete", 0)

    def test_the_same_file_gives_the_same_trace_however_it_is_run(self, tmp_path) -> None:  # PE-4
        path = str(written(tmp_path, crowd(4, 25)))
        hashes = {_ran(path, "--executor", shape)["trace_sha256"] for shape in ("inline", "processes:2")}
        assert len(hashes) == 1
        assert StudyRun.objects.count() == 2

    def test_a_run_has_the_owner_that_is_named(self) -> None:  # PE-3
        owner = get_user_model().objects.create_user("olga")
        assert StudyRun.objects.get(pk=_ran(str(FIRST), "--owner", "olga")["study"]).owner == owner

    def test_verify_says_that_replay_and_checkpoints_agree(self) -> None:  # PE-6
        number = str(_ran(str(FIRST))["study"])
        assert "byte for byte" in _study("verify", number)[0]
        assert StudyRun.objects.get(pk=number).replay == "same"

    def test_verify_names_the_first_difference(self) -> None:  # PE-6
        number = _ran(str(FIRST))["study"]
        event = TraceEvent.objects.filter(run=number, persona=1, turn=9, kind="reacted")
        payload = bytearray(event.get().payload)
        payload[40] ^= 1
        event.update(payload=bytes(payload))
        with pytest.raises(CommandError, match="bruno, turn 9, event 0: its bytes are not those that were written"):
            _study("verify", str(number))

    def test_export_gives_a_line_for_every_event(self) -> None:  # PE-3
        facts = _ran(str(FIRST))
        lines = _study("export", str(facts["study"]))[0].splitlines()
        assert len(lines) == facts["events"] + 1
        assert all(json.loads(line) for line in lines)

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["run", "gone.yaml"], "gone.yaml: No such file"),
            (["run", str(FIRST), "--owner", "nobody"], "there is no user 'nobody'"),
            (["run", str(FIRST), "--executor", "threads"], "no executor 'threads'"),
            (["run", str(FIRST), "--patience", "0"], "a number of seconds, 1 or more"),
            (["run", str(FIRST), "--patience", "nan"], "a number of seconds, 1 or more"),
            (["resume", "999"], "there is no study 999"),
            (["verify", "999"], "there is no study 999"),
            (["export", "999"], "there is no study 999"),
        ],
    )
    def test_a_refusal_is_one_line_and_leaves_nothing(self, words: list[str], said: str) -> None:  # SF-4
        with pytest.raises(CommandError) as refusal:
            _study(*words)
        assert said in str(refusal.value)
        assert "\n" not in str(refusal.value)
        assert not StudyRun.objects.exists()

    def test_an_unknown_adapter_leaves_no_run(self, tmp_path) -> None:  # SF-4
        with pytest.raises(CommandError, match="no embedder 'word2vec'"):
            _study("run", str(written(tmp_path, study(embedder="word2vec"))))
        assert not StudyRun.objects.exists()

    def test_progress_tells_rate_and_time_left(self, tmp_path) -> None:  # PE-4
        told = _study("run", str(written(tmp_path, crowd(2, 40))))[1]
        assert "2 personas × 40 turns" in told
        assert " a second, " in told
        assert " left" in told

    def test_failed_personas_are_told_and_the_command_fails(self, tmp_path, monkeypatch) -> None:  # PE-4
        def broken(persona, *rest):
            raise RuntimeError("no luck")

        monkeypatch.setattr("agentlab.persona.work.turn", broken)
        with pytest.raises(CommandError, match="2 of 2 personas failed"):
            _study("run", str(written(tmp_path, study())))
        assert StudyRun.objects.get().status == "incomplete"


def _manage(state: Path, *words: str, **given) -> subprocess.Popen:
    environment = {key: value for key, value in os.environ.items() if key not in ("SECRET_KEY", "DATABASE_URL")}
    environment |= {"AGENTLAB_STATE_DIR": str(state), "DJANGO_SETTINGS_MODULE": "agentlab.settings"}
    return subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "study", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
        **given,
    )


def _finished(process: subprocess.Popen) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def _wait_for(process: subprocess.Popen, words: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return
    raise AssertionError(f"{words!r} was never told")


def test_a_fresh_state_runs_a_study_and_ctrl_c_says_how_to_go_on(tmp_path) -> None:  # PE-5
    path = str(written(tmp_path, crowd(40, 2_000)))
    running = _manage(tmp_path / "state", "run", path, "--executor", "processes:2")
    _wait_for(running, " turns, ")
    os.killpg(running.pid, signal.SIGINT)  # what a terminal does: the whole group hears it
    code, _, err = _finished(running)
    assert code == 130, err
    assert "manage.py study resume 1" in err
    assert "Traceback" not in err
    assert _finished(_manage(tmp_path / "state", "verify", "1"))[0] == 0


def test_kill_9_of_the_whole_command_and_a_resume_give_the_same_trace(tmp_path) -> None:  # PE-5 SF-5
    path = str(written(tmp_path, crowd(12, 200, cap=16)))
    state = tmp_path / "state"
    plain = json.loads(_finished(_manage(state, "run", path, "--json"))[1].splitlines()[-1])
    running = _manage(state, "run", path, "--executor", "processes:2")
    _wait_for(running, " turns, ")
    running.kill()
    running.communicate()
    code, out, err = _finished(_manage(state, "resume", "2", "--executor", "processes:2", "--json"))
    assert code == 0, err
    resumed = json.loads(out.splitlines()[-1])
    assert (resumed["turns"], resumed["events"], resumed["trace_sha256"]) == (
        plain["turns"],
        plain["events"],
        plain["trace_sha256"],
    )
    assert _finished(_manage(state, "verify", "2"))[0] == 0


def test_an_export_into_a_pipe_that_closes_ends_quietly(tmp_path) -> None:  # SF-4
    state = tmp_path / "state"
    assert _finished(_manage(state, "run", str(FIRST)))[0] == 0
    exporting = _manage(state, "export", "1")
    assert exporting.stdout is not None
    exporting.stdout.read(10)
    exporting.stdout.close()
    assert exporting.stderr is not None
    assert "Traceback" not in exporting.stderr.read()
    exporting.wait()
