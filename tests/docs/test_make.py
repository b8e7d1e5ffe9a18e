"""`make` explains itself, and set-up says clearly what it lacks."""

import os
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from tools.files import ROOT


def targets() -> list[str]:
    makefile = Path(ROOT, "Makefile").read_text("utf-8")
    (phony,) = [line for line in makefile.splitlines() if line.startswith(".PHONY:")]
    return phony.removeprefix(".PHONY:").split()


def make(*arguments: str) -> str:
    # Flags of an outer make must not reach the inner one.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["make", *arguments], cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout


def test_plain_make_lists_every_target_with_one_line_each():
    listed = [line.split()[1] for line in make().splitlines()]
    assert listed == targets()


@pytest.mark.parametrize(
    "target",
    [
        "run",
        "test",
        "test-slow",
        "test-machine",
        "test-all",
        "check",
        "format",
        "sim",
        "bench",
        "coverage",
        "snapshots",
        "mutants",
        "lock",
        "build",
        "reference",
        "audit",
    ],
)
def test_every_target_that_needs_the_environment_sets_it_up_first(target):
    plan = make("--dry-run", "--what-if=requirements-dev.lock", target)
    assert "tools/setup.sh .venv requirements-dev.lock" in plan


def test_set_up_without_a_new_enough_python_says_so_and_touches_nothing(tmp_path):
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = subprocess.run(
        ["sh", "tools/setup.sh", str(tmp_path / "venv"), "requirements-dev.lock"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "PYTHON": str(old)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "no Python 3.11 or newer was found" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_set_up_shows_what_pip_said_when_pip_fails(tmp_path):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\ncase "$*" in *install*) echo "no such package"; exit 2;; esac\nexit 0\n')
    python.chmod(0o755)
    done = subprocess.run(
        ["sh", "tools/setup.sh", str(tmp_path), "requirements-dev.lock"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "no such package" in done.stderr
    assert "ready" not in done.stdout


@pytest.mark.parametrize("file", ["Makefile", "tools/install.sh"])
def test_what_is_locked_is_installed_without_a_look_at_newer_releases(file):
    """pip refuses a lock from the day on which a package that another wants with an extra has a newer release."""
    lines = Path(ROOT, file).read_text("utf-8").replace("\\\n", " ").splitlines()
    installs = [line for line in lines if "--require-hashes" in line]
    assert installs
    assert all("--no-deps" in line for line in installs), installs


def test_the_ci_script_is_executable_and_runs_the_checks_and_all_groups_of_tests():
    script = Path(ROOT, ".ci", "run")
    assert os.access(script, os.X_OK)
    lines = script.read_text("utf-8").splitlines()
    (together,) = re.findall(r"^test-all: (.+) ##", Path(ROOT, "Makefile").read_text("utf-8"), re.MULTILINE)
    assert [line for line in lines if line.startswith(("make ", "wait "))] == [
        "make setup",
        "make programs &",
        "make check",
        'wait "$fetching"',
        *(f"make {target}" for target in together.split()),
    ]
    assert "`make test`" in Path(ROOT, "README.md").read_text("utf-8")


def test_every_test_is_in_a_group_that_ci_runs():
    """Whatever its marks are; only what asks a real model is nobody's but `make test-judge`'s."""
    plan = make("--dry-run", "test-all")
    groups = set(re.findall(r'-m "([^"]+)"', plan))
    marks = ("slow", "machine", "node", "browser")
    for values in product((False, True), repeat=len(marks)):
        given = {**dict(zip(marks, values, strict=True)), "model": False}
        assert any(eval(group, {}, given) for group in groups), given


def test_a_path_that_is_named_runs_whatever_its_group_is():
    assert '-m "not node and not browser and not model" tests/leaks' in make(
        "--dry-run", "test", "ARGS=tests/leaks"
    )


@pytest.mark.slow
def test_tests_get_their_groups_by_where_they_stand_and_what_they_ask_for():
    """By a folder, by a parameter that names a server, by a module that starts one, and by the stopwatch."""
    paths = [
        "leaks/test_decoding.py",
        "store/test_statistics.py",
        "database/test_postgres.py",
        "judge/test_judge.py",
    ]
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "not slow and not machine"]
        + [f"tests/{path}" for path in paths],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "store/test_statistics.py" in found and "[memory" in found and "postgresql" not in found
    assert (
        "judge/test_judge.py" in found
        and "test_the_budget_holds_for_retry_and_fallback_together" not in found
    )
    assert "leaks/" not in found and "database/" not in found
