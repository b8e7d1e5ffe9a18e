"""`python -m simulator`: plays many seeds on all cores and sums up what they went through; status 1 if any broke an
invariant. `--seed K --trace` plays one again and prints every step."""

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator

from simulator.history import History, Result
from simulator.planted import Bug

CHUNK = 50
#: Lines of the trace that are printed for a seed that failed.
TAIL = 60
#: Failing seeds that are told in full.
TOLD = 3


def play(seed: int, bug: Bug | None = None) -> Result:
    """One history."""
    return History(seed, bug).run()


def _play_chunk(seeds: range) -> tuple[int, Counter[str], float, list[Result]]:
    counts: Counter[str] = Counter()
    seconds = 0.0
    broken: list[Result] = []
    for seed in seeds:
        result = play(seed)
        counts.update(result.counts)
        seconds += result.seconds
        if result.broken is not None:
            broken.append(result)
    return len(seeds), counts, seconds, broken


def _chunks(start: int, count: int) -> Iterator[range]:
    for first in range(start, start + count, CHUNK):
        yield range(first, min(first + CHUNK, start + count))


def play_many(start: int, count: int, jobs: int) -> int:
    """Play `count` seeds from `start` on; how many broke an invariant."""
    counts: Counter[str] = Counter()
    broken: list[Result] = []
    done, virtual, began = 0, 0.0, time.monotonic()
    with multiprocessing.Pool(jobs) as pool:
        for number, found, seconds, failures in pool.imap_unordered(_play_chunk, _chunks(start, count)):
            done, virtual = done + number, virtual + seconds
            counts.update(found)
            broken += failures
            for result in failures:
                print(f"\rseed {result.seed}: {result.broken}", file=sys.stderr)
            _progress(done, count, len(broken), time.monotonic() - began)
    print(file=sys.stderr)
    _sum_up(counts, done, virtual, time.monotonic() - began)
    for result in sorted(broken, key=lambda one: one.seed)[:TOLD]:
        _tell(result)
    if broken:
        seeds = " ".join(str(one.seed) for one in sorted(broken, key=lambda one: one.seed)[:50])
        print(f"\nFAILED: {len(broken)} of {done} seeds: {seeds}")
    else:
        print(f"\nclean: {done} seeds, every invariant held")
    return len(broken)


def _progress(done: int, count: int, broken: int, seconds: float) -> None:
    print(
        f"\r{done}/{count} seeds, {broken} broken, {done / seconds:.0f}/s ",
        end="",
        file=sys.stderr,
        flush=True,
    )


def _sum_up(counts: Counter[str], seeds: int, virtual: float, seconds: float) -> None:
    print(f"{seeds} histories, {virtual / 3600:.0f} virtual hours, in {seconds:.0f} s")
    for name, number in sorted(counts.items()):
        print(f"  {number:>10}  {name}")


def _tell(result: Result) -> None:
    print(f"\nseed {result.seed}: {result.broken}")
    print("\n".join(result.trace[-TAIL:]))
    print(f"replay: python -m simulator --seed {result.seed} --trace")


def _replay(seed: int, bug: Bug | None) -> int:
    history = History(seed, bug)
    result = history.run()
    print(history.world.plan)
    print("\n".join(history.world.trace.lines()))
    print(f"seed {seed}: {result.broken or 'clean'}; trace {result.digest}")
    return 1 if result.broken else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m simulator", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many histories to play")
    parser.add_argument("--start", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seed", type=int, help="play this one only")
    parser.add_argument("--trace", action="store_true", help="with --seed: print every step")
    parser.add_argument("--bug", choices=[bug.name for bug in Bug], help="with --seed: plant this bug")
    options = parser.parse_args()
    if options.seed is not None:
        return _replay(options.seed, Bug[options.bug] if options.bug else None)
    return 1 if play_many(options.start, options.seeds, options.jobs) else 0


if __name__ == "__main__":
    sys.exit(main())
