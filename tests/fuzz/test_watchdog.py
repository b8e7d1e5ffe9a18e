"""The watch over a fuzzed target: what hangs, and what grows, is ended from outside or inside, reported, and its input
kept as a case that the tests replay."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from fuzz.__main__ import ENGINES, NEEDS, WATCH, Watch, Watched, engines, run, share
from fuzz.child import NOTE_BYTES
from fuzz.targets import TARGETS
from tests.support.patience import NEVER_MS
from tests.support.patience import PATIENCE_S as GUARD_S
from tools.files import ROOT

pytestmark = pytest.mark.slow

#: The programs are the real ones: only the target, and the patience of the watch, are replaced.
CHILD = """
import sys, time
from fuzz import child, targets

def planted(data):
    if b"@" in data:
        {fault}

targets.TARGETS["url"] = planted
target, engine, seconds, seed, note = sys.argv[1:]
sys.exit(child.main(target, engine, float(seconds), int(seed), child.Path(note)))
"""
FAULTS = {
    "hang": "time.sleep(600)",
    "busy": "while True: pass",
    "memory": "hold = bytearray(600 * 1024 * 1024); hold[::4096] = b'x' * len(hold[::4096])",
    "slow-growth": "[planted.__dict__.setdefault('held', []).append(b'x' * 2**20) for _ in range(64)]",
}
#: Longer than the child takes to start on a busy machine; a test without a hang does not wait for it.
PATIENCE_S = 6.0


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch):
    """Where the child finds the modules."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def planted(tmp_path: Path, fault: str, hang_s: float = WATCH.hang_s) -> Watch:
    program = tmp_path / "planted.py"
    program.write_text(CHILD.format(fault=fault), "utf-8")
    child = (sys.executable, "-X", "faulthandler", str(program))
    return Watch(child, hang_s, look_every_s=0.1, cases=tmp_path / "cases")


@pytest.mark.parametrize("fault", ["hang", "busy"])
def test_a_call_that_never_returns_is_reported_as_a_hang_with_its_input(tmp_path, capsys, fault):
    watch = planted(tmp_path, FAULTS[fault], PATIENCE_S)
    assert not run("url", "mutation", NEVER_MS / 1000, 1, tmp_path, watch)
    (case,) = watch.cases.glob("url/*.bin")
    assert b"@" in case.read_bytes()
    said = capsys.readouterr().out
    assert "FOUND (hang)" in said
    assert str(case) in said


@pytest.mark.parametrize("fault", ["memory", "slow-growth"])
def test_memory_beyond_the_limit_is_reported_with_the_input(tmp_path, capsys, fault):
    watch = planted(tmp_path, FAULTS[fault])
    assert not run("url", "mutation", 60.0, 1, tmp_path, watch)
    (case,) = watch.cases.glob("url/*.bin")
    assert b"@" in case.read_bytes()
    said = capsys.readouterr().out
    assert "FOUND (exit 1)" in said
    assert "at most 512 are allowed" in said


def test_a_hang_is_ended_and_leaves_no_process(tmp_path):
    note = tmp_path / "note"
    note.write_bytes(bytes(NOTE_BYTES))
    watch = planted(tmp_path, FAULTS["hang"], PATIENCE_S)
    child = Watched("url", "mutation", NEVER_MS / 1000, 1, note, watch)
    assert child.wait() < 0, "it was killed"
    assert child.hung


def test_the_time_of_an_engine_that_is_not_there_goes_to_the_others(capsys):
    needs = {**NEEDS, "coverage": "a_package_that_nobody_has"}
    assert engines(ENGINES, needs) == ["mutation", "properties"]
    assert "coverage is left out" in capsys.readouterr().out


def test_the_minutes_are_divided_over_all_runs_and_the_program_ends_by_itself():
    """`make fuzz MINUTES=30` is 30 minutes for all targets and engines together."""
    pairs = len(TARGETS) * len(ENGINES)
    assert share(30.0, pairs) * pairs == pytest.approx(30 * 60)
    began = time.monotonic()
    command = [sys.executable, "-m", "fuzz", "--minutes", "0.05", "--seed", "1"]
    narrowed = ["--target", "url", "--target", "manifest", "--engine", "mutation"]
    done = subprocess.run(
        [*command, *narrowed], cwd=ROOT, capture_output=True, text=True, timeout=GUARD_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 runs of 1.5 s" in done.stdout
    assert done.stdout.count("nothing found") == 3, "one line for each run, and one for all"
    assert time.monotonic() - began >= 3
