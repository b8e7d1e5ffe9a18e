"""`python -m tools.mutants [--fresh] [--jobs N] [module ...]`: all modules that are watched, or those named."""

import argparse
import os
import sys
import time
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from tools.files import ROOT
from tools.mutants import mutations, runs, verdict
from tools.mutants.mutations import Mutant

#: What is mutated, and the tests that must notice.
WATCHED = {
    "domain/*.py": ["tests/domain"],
    "store/claims.py": ["tests/store/test_claims.py"],
    "sources/archive.py": ["tests/sources/test_archive.py"],
    "scan/rules/evaluate.py": ["tests/scan/test_evaluate.py"],
}
FOLDER = ROOT / "build" / "mutants"
SURVIVORS = Path(__file__).with_name("survivors.toml")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("modules", nargs="*", help="such as domain.decision; all without any")
    parser.add_argument("--fresh", action="store_true", help="run again what was run before")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    options = parser.parse_args(arguments)
    paths, tests = _chosen(options.modules)
    modules = [mutations.module_name(path) for path in paths]
    started = time.monotonic()
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.chdir(ROOT)
    results = _run(paths, tests, jobs=options.jobs, fresh=options.fresh)
    print("\n".join(verdict.table(results, modules)))
    listed = verdict.read_survivors(SURVIVORS)
    for line in verdict.outdated(results, listed, modules):
        print(f"mutants: {line}")
    found = verdict.problems(results, listed)
    for line in found:
        print(f"mutants: {line}")
    print(f"mutants: {'failed' if found else 'good'}, after {time.monotonic() - started:.0f} s")
    return 1 if found else 0


def _chosen(names: list[str]) -> tuple[list[Path], list[str]]:
    found: list[Path] = []
    tests: list[str] = []
    for pattern, of_pattern in WATCHED.items():
        paths = [path for path in sorted((ROOT / mutations.SOURCES).glob(pattern)) if path.stem != "__init__"]
        if names:
            paths = [path for path in paths if mutations.module_name(path) in names]
        found += paths
        tests += of_pattern if paths else []
    missing = set(names) - {mutations.module_name(path) for path in found}
    if missing:
        raise SystemExit(f"mutants: not watched: {', '.join(sorted(missing))}; see WATCHED in {__file__}")
    return found, tests


def _run(paths: list[Path], tests: list[str], *, jobs: int, fresh: bool) -> verdict.Results:
    mutations.drop_text_operators()
    mutants = [mutant for path in paths for mutant in mutations.mutants_of(path, mutations.module_name(path))]
    print(f"mutants: {len(mutants)} in {len(paths)} modules; asking mypy", flush=True)
    rejected = mutations.rejected_by_types(paths, FOLDER)
    hashes = {
        f"{mutations.module_name(path)}.{name}": value
        for path in paths
        for name, value in mutations.function_hashes(path).items()
    }
    before = verdict.read_results(FOLDER / "results.json")
    results: verdict.Results = {}

    def pending(callers: dict[str, set[str]]) -> list[Mutant]:
        shared = _shared_hash()
        todo = []
        for mutant in mutants:
            entry = results.get(mutant.name)
            if entry is None:
                files = sorted({test.partition("::")[0] for test in callers.get(mutant.name, ())})
                text = "".join([shared, hashes[mutant.name], *(_file_hash(ROOT / file) for file in files)])
                entry = results[mutant.name] = verdict.FunctionResults(sha256(text.encode()).hexdigest())
            known = None if fresh else before.get(mutant.name)
            kept = known.mutants.get(mutant.change) if known and known.hash == entry.hash else None
            if (mutant.name, mutant.number) in rejected:
                entry.mutants[mutant.change] = verdict.Result(runs.TYPES)
            elif kept is not None and kept.status != runs.ERROR:
                entry.mutants[mutant.change] = kept
            else:
                todo.append(mutant)
        print(f"mutants: {len(rejected)} rejected by mypy, {len(todo)} to run", flush=True)
        return todo

    def report(mutant: Mutant, status: str, seconds: float) -> None:
        results[mutant.name].mutants[mutant.change] = verdict.Result(status, round(seconds, 2))
        if status != runs.KILLED:
            print(f"mutants: {status}: {mutant.name}: {mutant.change}", flush=True)

    session = runs.Session(pending, sorted({mutant.name for mutant in mutants}), jobs, report)
    try:
        runs.run(session, tests, FOLDER)
    finally:
        # Interrupted, it keeps what it has, and what another run has found meanwhile.
        verdict.write_results(
            FOLDER / "results.json", verdict.read_results(FOLDER / "results.json") | results
        )
    return results


def _shared_hash() -> str:
    """Of what can change every result: mutmut, and what the tests share."""
    files = [ROOT / "tests" / "conftest.py", *(ROOT / "tests" / "support").glob("*.py")]
    return "".join([metadata.version("mutmut"), *(_file_hash(file) for file in sorted(files))])


def _file_hash(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
