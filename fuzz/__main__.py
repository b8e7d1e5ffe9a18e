"""Runs every target under every engine for a share of the time, and keeps what was found: `python -m fuzz`."""

import argparse
import hashlib
import importlib.util
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fuzz.child import HEAD, NOT_THERE, NOTE_BYTES
from fuzz.targets import TARGETS

CASES = Path(__file__).parents[1] / "tests" / "fuzz" / "cases"
ENGINES = ("mutation", "properties", "coverage")
#: The package without which an engine cannot run.
NEEDS = {"properties": "hypothesis", "coverage": "atheris"}


@dataclass(frozen=True)
class Watch:
    """What is watched, and with how much patience."""

    #: What runs one target under one engine; its arguments follow.
    child: tuple[str, ...] = (sys.executable, "-X", "faulthandler", "-m", "fuzz.child")
    #: One call that takes longer hangs. The machine may be busy, and the scanner stops itself after 10 s.
    hang_s: float = 30.0
    look_every_s: float = 0.5
    #: Where inputs that found something are kept.
    cases: Path = CASES


WATCH = Watch()


class Watched:
    """A child, seen through the note that it writes."""

    def __init__(
        self, target: str, engine: str, seconds: float, seed: int, note: Path, watch: Watch = WATCH
    ) -> None:
        self._watch = watch
        self._note = note
        self._errors = note.with_suffix(".err")
        self.hung = False
        arguments = [target, engine, f"{seconds:g}", str(seed), str(note)]
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [*watch.child, *arguments],
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )

    def wait(self) -> int:
        """Until it ends, or no call has ended for too long."""
        count, moved = -1, time.monotonic()
        while self._process.poll() is None:
            time.sleep(self._watch.look_every_s)
            now, _ = self.noted()
            if now != count:
                count, moved = now, time.monotonic()
            elif time.monotonic() - moved > self._watch.hang_s:
                self.hung = True
                self._process.kill()
        return self._process.wait()

    def noted(self) -> tuple[int, bytes]:
        """How many calls there were, and the last input."""
        with self._note.open("rb") as file:
            count, length = HEAD.unpack(file.read(HEAD.size))
            return count, file.read(length)

    def said(self) -> str:
        return self._errors.read_text("utf-8", "replace")[-4000:]


def run(target: str, engine: str, seconds: float, seed: int, folder: Path, watch: Watch = WATCH) -> bool:
    """Whether nothing was found; says how many inputs there were."""
    note = folder / f"{target}-{engine}"
    note.write_bytes(bytes(NOTE_BYTES))
    child = Watched(target, engine, seconds, seed, note, watch)
    code = child.wait()
    count, data = child.noted()
    if code == NOT_THERE:
        print(f"  {target:<9} {engine:<11} left out: {child.said().strip()}", flush=True)
        return True
    if code == 0:
        print(f"  {target:<9} {engine:<11} {count:>9} inputs, nothing found", flush=True)
        return True
    if count == 0:
        print(f"  {target:<9} {engine:<11} did not begin: {child.said()}", flush=True)
        return False
    kept = keep(watch.cases / target, data)
    how = "hang" if child.hung else f"exit {code}"
    print(f"  {target:<9} {engine:<11} {count:>9} inputs, FOUND ({how}): {kept}\n{child.said()}", flush=True)
    return False


def keep(folder: Path, data: bytes) -> Path:
    """The input as a case that the tests replay."""
    place = folder / f"{hashlib.sha256(data).hexdigest()[:16]}.bin"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    return place


def engines(asked: Sequence[str], needs: Mapping[str, str] = NEEDS) -> list[str]:
    """Those that are there. The time of one that is not goes to the others."""
    there = [one for one in asked if importlib.util.find_spec(needs.get(one, "fuzz")) is not None]
    for one in asked:
        if one not in there:
            print(f"fuzz: {one} is left out: there is no {needs[one]} here", flush=True)
    return there or list(asked)


def share(minutes: float, runs: int) -> float:
    """Seconds for each run, of the minutes that all have together."""
    return max(1.0, minutes * 60 / runs)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="for all targets together")
    parser.add_argument("--target", choices=TARGETS, action="append", help="only this one; repeatable")
    parser.add_argument("--engine", choices=ENGINES, action="append", help="only this one; repeatable")
    parser.add_argument("--seed", type=int, default=None, help="repeats a run")
    options = parser.parse_args()
    seed = secrets.randbits(31) if options.seed is None else options.seed
    usable = engines(options.engine or ENGINES)
    pairs = [(target, engine) for target in options.target or TARGETS for engine in usable]
    seconds = share(options.minutes, len(pairs))
    print(f"fuzz: {len(pairs)} runs of {seconds:g} s, --seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="vskill-fuzz-") as folder:
        results = [run(target, engine, seconds, seed, Path(folder)) for target, engine in pairs]
    print("fuzz: nothing found" if all(results) else "fuzz: the cases above are kept; the tests replay them")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
