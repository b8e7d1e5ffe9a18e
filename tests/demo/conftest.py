"""An installation of its own for each test, and the commands as processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.compiled_rules import keep_compiled_rules
from tests.support.patience import PATIENCE_S

SOURCE = Path(__file__).parents[2] / "src"
COMMAND = [sys.executable, "-m", "vskill_platform"]


@pytest.fixture
def environment(tmp_path):
    """What a process of ours needs, and no setting but the data folder."""
    keep_compiled_rules(tmp_path / "data")
    plain = {name: value for name, value in os.environ.items() if not name.startswith("VSKILL_")}
    return {
        **plain,
        "PYTHONPATH": str(SOURCE),
        "VSKILL_DATA_DIR": str(tmp_path / "data"),
        "VSKILL_LOG_FORMAT": "json",
        "PYTHONUNBUFFERED": "1",
    }


@pytest.fixture
def command(environment):
    """Runs a command as a person would, to its end."""

    def run(*arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [*COMMAND, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    return run
