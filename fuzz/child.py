"""One target under one engine, in a process of its own: `python -m fuzz.child TARGET ENGINE SECONDS SEED NOTE`.

Before each call the input is noted in a file that the parent shares, so that it survives whatever the call does to
this process. The exit status is 0 for nothing found, 1 for a broken promise, 3 for an engine that is not there.
"""

import importlib
import mmap
import resource
import struct
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from fuzz.mutation import Mutator
from fuzz.promises import Broken
from fuzz.seeds import TOKENS, seeds
from fuzz.targets import TARGETS

NOTE_BYTES = 8 * 1024 * 1024
#: Count of calls, length of the input.
HEAD = struct.Struct("<QQ")
MOST_RSS_KIB = 512 * 1024
NOT_THERE = 3


class Note:
    """The input that is being tried, where the parent can read it."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), NOTE_BYTES)
        self.count = 0

    def write(self, data: bytes) -> None:
        kept = data[: NOTE_BYTES - HEAD.size]
        self.count += 1
        self._map[HEAD.size : HEAD.size + len(kept)] = kept
        self._map[: HEAD.size] = HEAD.pack(self.count, len(kept))


def checked(target: str, note: Note) -> Callable[[bytes], None]:
    """The target, with its input noted before and the memory looked at behind."""
    call = TARGETS[target]

    def check(data: bytes) -> None:
        note.write(data)
        call(data)
        peak = _peak_kib()
        if peak > MOST_RSS_KIB:
            raise Broken(f"memory of {peak // 1024} MiB, and at most {MOST_RSS_KIB // 1024} are allowed")

    return check


def _peak_kib() -> int:
    """The most memory that this program had resident. What `getrusage` says begins with the parent's, before `exec`,
    so it is only asked where there is nothing better."""
    try:
        with Path("/proc/self/status").open("rb") as status:
            for line in status:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1])
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def mutate(check: Callable[[bytes], None], target: str, seconds: float, random_seed: int) -> None:
    until = time.monotonic() + seconds
    for data in Mutator(seeds(target), TOKENS[target], random_seed).inputs():
        check(data)
        if time.monotonic() > until:
            return


def cover(
    check: Callable[[bytes], None], target: str, seconds: float, random_seed: int, folder: Path
) -> None:
    """Coverage-guided. What is imported already is instrumented function by function. It ends the process."""
    atheris = importlib.import_module("atheris")  # it may not be there

    for module in [name for name in sys.modules if name.startswith("vskill_platform.")]:
        for value in list(vars(sys.modules[module]).values()):
            if callable(value) and getattr(value, "__module__", "") == module and hasattr(value, "__code__"):
                atheris.instrument_func(value)
    corpus = folder / f"{target}-corpus"
    corpus.mkdir(exist_ok=True)
    for number, data in enumerate(seeds(target)):
        (corpus / str(number)).write_bytes(data)
    options = [
        sys.argv[0],
        f"-seed={random_seed % 2**31}",
        "-max_len=16384",
        f"-max_total_time={int(seconds)}",
    ]
    # The search engine uses signals of its own, and faulthandler tells more than libFuzzer of those that are faults.
    options += [f"-handle_{name}=0" for name in ("segv", "bus", "fpe", "ill", "abrt", "int", "term", "xfsz")]
    options += ["-rss_limit_mb=0", "-timeout=0", f"-artifact_prefix={folder}/", "-verbosity=0", str(corpus)]
    atheris.Setup(options, check)
    atheris.Fuzz()


def main(target: str, engine: str, seconds: float, random_seed: int, note_path: Path) -> int:
    TARGETS[target](seeds(target)[0])
    note = Note(note_path)
    check = checked(target, note)
    try:
        if engine == "mutation":
            mutate(check, target, seconds, random_seed)
        elif engine == "properties":
            from fuzz import properties  # noqa: PLC0415 - only this engine needs hypothesis

            properties.run(check, target, seconds, random_seed)
        else:
            cover(check, target, seconds, random_seed, note_path.parent)
    except ImportError as error:
        print(f"{engine} is not there: {error}", file=sys.stderr)
        return NOT_THERE
    except Exception:  # noqa: BLE001 - whatever it is, it is what is looked for
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5])))
