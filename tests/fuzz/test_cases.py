"""What fuzzing once found stays repaired, and the fuzzer finds what it is there to find."""

import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.child import HEAD, NOTE_BYTES
from fuzz.mutation import Mutator
from fuzz.seeds import TOKENS, seeds
from fuzz.targets import TARGETS
from tests.support.patience import PATIENCE_S
from tools.files import ROOT

CASES = Path(__file__).parent / "cases"


def cases():
    return [path for path in sorted(CASES.glob("*/*.bin")) if path.parent.name in TARGETS]


@pytest.mark.parametrize("case", cases(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_case_that_was_found_is_answered(case):
    TARGETS[case.parent.name](case.read_bytes())


@pytest.mark.parametrize("target", TARGETS)
def test_every_honest_input_is_answered(target):
    for data in seeds(target)[:60]:
        TARGETS[target](data)


@pytest.mark.parametrize("target", [one for one in TARGETS if one != "scanner"])
def test_a_few_hundred_changed_inputs_are_answered(target):
    inputs = Mutator(seeds(target), TOKENS[target], 1).inputs()
    for _ in range(400):
        TARGETS[target](next(inputs))


def test_the_same_seed_gives_the_same_inputs():
    first, second = (Mutator(seeds("url"), TOKENS["url"], 7).inputs() for _ in range(2))
    assert [next(first) for _ in range(200)] == [next(second) for _ in range(200)]


PLANTED = """
import sys, time
from fuzz import child, targets
def planted(data):
    {fault}
targets.TARGETS["url"] = planted
sys.argv[1:] = {arguments!r}
sys.exit(child.main("url", "mutation", 5.0, 1, child.Path({note!r})))
"""


@pytest.mark.parametrize(
    "fault",
    [
        "if b'@' in data: raise KeyError('planted')",
        "if b'@' in data: import ctypes; ctypes.string_at(0)",
        "hold = bytearray(600 * 1024 * 1024); hold[::4096] = b'x' * len(hold[::4096])",
    ],
    ids=["exception", "crash", "memory"],
)
def test_a_planted_fault_is_found_and_its_input_survives(tmp_path, fault):
    note = tmp_path / "note"
    note.write_bytes(bytes(NOTE_BYTES))
    program = PLANTED.format(fault=fault, arguments=[], note=str(note))
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode != 0, done.stderr
    with note.open("rb") as file:
        count, length = HEAD.unpack(file.read(HEAD.size))
        data = file.read(length)
    assert count >= 1
    assert b"@" in data or "bytearray" in fault
