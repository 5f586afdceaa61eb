"""`manage.py study`, as a person and as a script use it."""

import json
import os
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.core.management.base import OutputWrapper

from agentlab.persona.adapters.complete_rules import RuleModel
from agentlab.persona.management.commands.study import _Meter
from agentlab.persona.models import StudyPersona, StudyRun, TraceEvent
from agentlab.persona.runner import Progress, Runner

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

    def test_run_resume_and_verify_end_with_the_path_of_the_studys_page(self, monkeypatch) -> None:  # PE-3
        assert _study("run", str(FIRST))[0].splitlines()[-1].endswith(f": /personas/{StudyRun.objects.get().pk}")
        err, go = StringIO(), Runner.go
        with monkeypatch.context() as patched, pytest.raises(SystemExit):
            patched.setattr(Runner, "go", lambda runner: (runner.stop(), go(runner))[1])
            call_command("study", "run", str(FIRST), stdout=StringIO(), stderr=err)
        number = StudyRun.objects.latest("pk").pk
        assert f"Stopped after 0 turns: /personas/{number}\nTo go on: manage.py study resume {number}" in err.getvalue()
        assert _study("resume", str(number))[0].splitlines()[-1].endswith(f": /personas/{number}")
        assert _study("verify", str(number))[0].endswith(f"byte for byte: /personas/{number}\n")
        TraceEvent.objects.filter(run=number, persona=1, turn=9, kind="reacted").update(label="praise")
        with pytest.raises(CommandError, match=f": /personas/{number}$"):
            _study("verify", str(number))

    def test_verify_names_the_first_difference(self) -> None:  # PE-6
        number = _ran(str(FIRST))["study"]
        event = TraceEvent.objects.filter(run=number, persona=1, turn=9, kind="reacted")
        payload = bytearray(event.get().payload)
        payload[40] ^= 1
        event.update(payload=bytes(payload))
        with pytest.raises(CommandError, match="bruno, turn 9, event 0: its bytes are not those that were written"):
            _study("verify", str(number))

    def test_what_a_study_says_cannot_rewrite_the_terminal_and_letters_stay_letters(self, tmp_path) -> None:  # SF-4
        name = "ход 你 \x9b2K\u202e05\u2028end"
        path = written(tmp_path, study(name=name, schedule={"turns": 1}, stimuli=[{"text": name}]))
        out, err = _study("run", str(path), "--json")
        assert f"Study {json.loads(out)['study']}: ход 你 \\u009b2KRLO05LSend, 2 personas" in err
        export = _study("export", str(json.loads(out)["study"]))[0]
        assert json.loads(export.split("\n")[0])["definition"]["name"] == name
        assert "ход 你 \\u009b2K\\u202e05\\u2028end" in export
        assert not {"\x9b", "\u202e", "\u2028"} & set(export + err)

    def test_export_gives_a_line_for_every_event(self) -> None:  # PE-3
        facts = _ran(str(FIRST))
        lines = _study("export", str(facts["study"]))[0].splitlines()
        assert len(lines) == facts["events"] + 1
        assert all(json.loads(line) for line in lines)

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["run", "gone.yaml"], "gone.yaml: No such file"),
            (["run", str(FIRST), "--owner", "nobody"], "there is no user 'nobody' in "),
            (["run", str(FIRST), "--owner", "\udcff"], "there is no user"),
            (["run", str(FIRST), "--executor", "threads"], "no executor 'threads'"),
            (["run", str(FIRST), "--patience", "0"], "a number of seconds, 1 or more"),
            (["run", str(FIRST), "--patience", "nan"], "a number of seconds, 1 or more"),
            (["resume", "999"], "there is no study 999 in "),
            (["resume", "9" * 30], "there is no study 999"),
            (["verify", "9" * 30], "there is no study 999"),
            (["verify", "999"], "there is no study 999 in "),
            (["export", "999"], "there is no study 999 in "),
        ],
    )
    def test_a_refusal_is_one_line_and_leaves_nothing(self, words: list[str], said: str) -> None:  # SF-4
        with pytest.raises(CommandError) as refusal:
            _study(*words)
        assert said in str(refusal.value)
        assert "\n" not in str(refusal.value)
        assert not StudyRun.objects.exists()

    @pytest.mark.parametrize("verb", ["resume", "verify", "export", "delete"])
    def test_an_unknown_study_is_said_with_the_database_that_lacks_it(self, verb: str, monkeypatch) -> None:  # SF-4
        elsewhere = {"ENGINE": "django.db.backends.postgresql", "HOST": "db.example", "PORT": 6543, "NAME": "lab"}
        for name, value in {**elsewhere, "USER": "ada", "PASSWORD": "hunter22"}.items():
            monkeypatch.setitem(settings.DATABASES["default"], name, value)
        with pytest.raises(CommandError) as refusal:
            _study(verb, "999")
        assert str(refusal.value) == "there is no study 999 in postgresql db.example:6543/lab"

    def test_an_unknown_adapter_leaves_no_run(self, tmp_path) -> None:  # SF-4
        with pytest.raises(CommandError, match="no embedder 'word2vec'"):
            _study("run", str(written(tmp_path, study(embedder="word2vec"))))
        assert not StudyRun.objects.exists()

    @pytest.mark.parametrize("verb", ["run", "resume", "verify", "export", "delete"])
    def test_help_shows_how_it_is_used(self, verb: str, capsys) -> None:  # SF-4
        with pytest.raises(SystemExit):
            call_command("study", verb, "--help")
        told = capsys.readouterr().out
        assert f"manage.py study {verb} " in told
        assert "exit code" in told or verb == "export"

    def test_verify_answers_a_program(self) -> None:  # PE-6
        facts = _ran(str(FIRST))
        number = str(facts["study"])
        same = {"study": facts["study"], "replay": "same", "events": facts["events"], "difference": None}
        assert json.loads(_study("verify", number, "--json")[0]) == same
        TraceEvent.objects.filter(run=number, persona=1, turn=9, kind="reacted").update(label="praise")
        out = StringIO()
        with pytest.raises(CommandError, match="bruno, turn 9"):
            call_command("study", "verify", number, "--json", stdout=out, stderr=StringIO())
        answer = json.loads(out.getvalue())
        assert (answer["replay"], answer["difference"]["turn"]) == ("differs", 9)

    def test_verify_tells_how_far_it_is(self, tmp_path, monkeypatch) -> None:  # PE-6
        number = str(_ran(str(FIRST))["study"])
        told = _study("verify", number)[1]
        assert "of 6 personas replayed" in told

    def test_an_export_names_who_failed_and_takes_events_of_nobody(self, tmp_path, monkeypatch) -> None:  # PE-3
        number = _ran(str(FIRST))["study"]
        StudyPersona.objects.filter(run=number, key="bruno").update(failed="ValueError: no luck")
        StudyPersona.objects.filter(run=number, key="farid").delete()
        lines = [json.loads(line) for line in _study("export", str(number))[0].splitlines()]
        assert lines[0]["failed"] == {"bruno": "ValueError: no luck"}
        assert lines[-1]["persona"] == 5

    def test_a_model_that_is_paid_for_is_announced_with_the_number_of_its_calls(self, tmp_path, monkeypatch) -> None:
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")  # PE-8
        monkeypatch.setattr("agentlab.persona.adapters.openai.RETRIES", 0)
        content = study(
            tier_b={"budget": 3, "model": "openai:m", "above": 1.0}, probes={"every": 3, "opinions": ["levy"]}
        )
        told = _study("run", str(written(tmp_path, content)))[1]
        assert "openai:m is asked at most 3 times for reactions and 2 times by probes" in told

    def test_a_model_that_never_answers_is_the_last_thing_that_is_said(self, tmp_path, monkeypatch) -> None:  # PE-8
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
        monkeypatch.setattr("agentlab.persona.adapters.openai.RETRIES", 0)
        path = str(written(tmp_path, study(tier_b={"budget": 3, "model": "openai:m", "above": 0.0})))
        told = _study("run", path)[0].splitlines()  # it is complete: arithmetic decides where no model does
        assert " complete: 6 turns, " in told[-2]
        alone = "None of 3 model calls was answered with a reaction: every reaction is arithmetic alone"
        assert told[-1] == f"{alone} (no answer: m: APIConnectionError)"
        facts = _ran(path)
        assert (facts["status"], facts["model_calls"], facts["answered"]) == ("complete", 3, 0)

    def test_a_model_that_answers_now_and_then_is_told_with_how_often(self, tmp_path, monkeypatch) -> None:  # PE-8
        answers = iter(["{}", '{"action": "like"}', "{}"])
        monkeypatch.setattr(RuleModel, "complete", lambda model, prompt: next(answers))
        path = str(written(tmp_path, study(tier_b={"budget": 3, "above": 0.0})))
        told = _study("run", path)[0].splitlines()[-1]
        rest = "2 reactions meant for the model are arithmetic (the answer names no permitted action)"
        assert told == f"1 of 3 model calls was answered with a reaction: {rest}"

    def test_where_every_call_is_answered_nothing_more_is_said(self, tmp_path) -> None:  # PE-8
        path = str(written(tmp_path, study(tier_b={"budget": 3, "above": 0.0})))
        assert "complete: 6 turns" in _study("run", path)[0].splitlines()[-1]

    def test_progress_tells_no_time_left_before_it_is_known(self, tmp_path) -> None:  # PE-4
        told = _study("run", str(written(tmp_path, crowd(2, 40))))[1]
        assert "2 personas × 40 turns" in told
        assert " of 80 turns, time left not known yet" in told
        assert " a second" not in told

    @pytest.mark.parametrize(("rate", "told"), [(5000.4, "5,000 a second, 5.2 s"), (0.5, "0.5 a second, 14 h 26 min")])
    def test_progress_tells_rate_and_time_left(self, rate: float, told: str) -> None:  # PE-4
        out = StringIO()
        _Meter(OutputWrapper(out)).turns(Progress(2_000, 28_000, rate, 0))
        assert out.getvalue() == f"2,000 of 28,000 turns, {told} left\n"

    def test_failed_personas_are_told_and_the_command_fails(self, tmp_path, monkeypatch) -> None:  # PE-4
        def broken(persona, *rest):
            raise RuntimeError("no luck")

        monkeypatch.setattr("agentlab.persona.work.turn", broken)
        with pytest.raises(CommandError, match="2 of 2 personas failed"):
            _study("run", str(written(tmp_path, study())))
        assert StudyRun.objects.get().status == "incomplete"


def _manage(state: Path, *words: str, **given: str) -> subprocess.Popen:
    environment = {key: value for key, value in os.environ.items() if key not in ("SECRET_KEY", "DATABASE_URL")}
    environment |= {"AGENTLAB_STATE_DIR": str(state), "DJANGO_SETTINGS_MODULE": "agentlab.settings", **given}
    return subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "study", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
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


@pytest.mark.parametrize(
    ("number", "code", "executor"),
    [(signal.SIGINT, 130, "processes:2"), (signal.SIGTERM, 143, "inline"), (signal.SIGINT, 130, "dask-local:2")],
)
def test_a_fresh_state_runs_a_study_and_ctrl_c_says_how_to_go_on(
    tmp_path, number: int, code: int, executor: str
) -> None:  # PE-5
    if "dask" in executor:
        pytest.importorskip("distributed")
    path = str(written(tmp_path, crowd(40, 2_000)))
    running = _manage(tmp_path / "state", "run", path, "--executor", executor, "--json")
    _wait_for(running, " turns, ")
    os.killpg(running.pid, number)  # what a terminal does: the whole group hears it
    ended, out, err = _finished(running)
    assert ended == code, err
    assert "manage.py study resume 1" in err
    assert "Traceback" not in err
    assert json.loads(out)["status"] == "stopped"
    assert _finished(_manage(tmp_path / "state", "verify", "1"))[0] == 0


def test_ctrl_c_before_a_study_begins_is_one_line_and_leaves_nothing(tmp_path) -> None:  # PE-5 SF-4
    os.mkfifo(tmp_path / "study.yaml")
    running = _manage(tmp_path / "state", "run", str(tmp_path / "study.yaml"))
    with (tmp_path / "study.yaml").open("w"):  # it reads now
        running.send_signal(signal.SIGINT)
        code, _, err = _finished(running)
    assert (code, err) == (130, "CommandError: interrupted\n")


@pytest.mark.parametrize("verb", [("verify", "1"), ("resume", "1"), ("export", "1"), ("run", str(FIRST))])
def test_outside_a_local_site_an_old_schema_names_the_step_that_is_missing(tmp_path, verb: tuple[str, ...]) -> None:
    database = f"sqlite:///{tmp_path}/old.sqlite3"  # SF-4
    production = {"SECRET_KEY": "x" * 60, "DATABASE_URL": database, "ALLOWED_HOSTS": "a"}
    code, out, err = _finished(_manage(tmp_path / "state", *verb, **production))
    assert (code, out) == (1, "")
    assert err == "CommandError: the database's schema is not up to date: `manage.py migrate` first\n"


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
