"""The real analysers where a test asks for them, and programs that misbehave under their names."""

import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.envs import open_test_env, run_until_quiet, submit_skill
from tests.support.system_reads import get_submission
from vskill_core.content import SkillFile
from vskill_platform.domain.submissions.states import State

ANALYSERS = Path(__file__).parents[2] / ".venv" / "analysers" / "bin"

#: What a test that needs no analyser says.
NONE: dict[str, Any] = {"bandit_command": "off", "semgrep_command": "off"}

BAD_PYTHON = b"import subprocess, sys\n\nsubprocess.run(sys.argv[1], shell=True)  # nosec nosemgrep\n"
GOOD_PYTHON = b"def double(number: int) -> int:\n    return 2 * number\n\n\nprint(double(21))\n"


def real(name: str) -> str:
    program = ANALYSERS / name
    assert program.exists(), f"{program} is not there: run 'make analysers'"
    return str(program)


def both() -> dict[str, Any]:
    """The settings with which the two real ones are found."""
    return {"bandit_command": real("bandit"), "semgrep_command": real("semgrep")}


@pytest.fixture
def fake(tmp_path):
    """A program that does what a few lines of Python say, instead of analysing; it knows its version."""

    def make(code: str, name: str = "fake-bandit") -> str:
        program = tmp_path / name
        head = f"#!{sys.executable} -IS\nimport os, sys, time\n"
        asked = "if '--version' in sys.argv:\n    print('bandit 0.0.1')\n    sys.exit()\n"
        program.write_text(f"{head}{asked}{code}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return str(program)

    return make


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    """No analyser is installed; a test that wants one opens its own."""
    async with open_test_env(request.param, tmp_path, **NONE) as env:
        yield env


def script(path: str, data: bytes) -> SkillFile:
    return SkillFile(path, "100644", data)


async def published(env, name: str = "demo", *extra: SkillFile) -> str:
    """A published skill; its digest."""
    submitted = await submit_skill(name, extra=extra)
    assert submitted.submission is not None
    await run_until_quiet(env)
    record = await get_submission(submitted.submission.id)
    assert record.state is State.PUBLISHED and record.digest is not None
    return record.digest


def processes_with(marker: str) -> list[str]:
    """The ids of running processes with this word on their command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (entry / "cmdline").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found
