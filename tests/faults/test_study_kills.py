"""The study runner killed at any point: nothing is lost, and nothing is there twice."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.persona.making import crowd, written

ROOT = Path(__file__).parent.parent.parent
DEATHS = 50


def test_killed_at_fifty_random_points_and_resumed_the_trace_is_as_if_never_killed(tmp_path) -> None:  # PE-5 SF-5
    path = written(
        tmp_path, crowd(20, 30, cap=8, reflection={"batch": 3, "at": 4}, probes={"every": 7, "opinions": ["levy"]})
    )
    environment = {key: value for key, value in os.environ.items() if key not in ("SECRET_KEY", "DATABASE_URL")}
    environment |= {
        "AGENTLAB_STATE_DIR": str(tmp_path / "state"),
        "AGENTLAB_LOCAL": "1",
        "PYTHONPATH": str(ROOT),
        "DJANGO_SETTINGS_MODULE": "agentlab.settings",
    }
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "study_killed.py"), str(path), str(DEATHS)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["plain"][1] == 20 * 30
    assert found["lines"] > 1000
    assert found["spoiled"] == []
