"""What the results mean: which mutants survived, which of them have a written reason, and the table by module.

Results are kept by function in `build/mutants/results.json`, each under a hash of the function's source and of the
test files that call it: where the hash is the same, the results are taken from there.
"""

import tomllib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tools.mutants.runs import ERROR, KILLED, SURVIVED, TIMEOUT, TYPES, UNTESTED

#: Of the mutants that the type checker lets pass.
MOST_SURVIVORS = 0.02


class Result(msgspec.Struct, frozen=True):
    """What became of one mutant."""

    status: str
    #: of the processor
    seconds: float = 0.0

    @property
    def survived(self) -> bool:
        return self.status in (SURVIVED, UNTESTED)


class FunctionResults(msgspec.Struct):
    """What became of the mutants of one function, by what they change."""

    hash: str
    mutants: dict[str, Result] = {}


#: By the function's name, such as `domain.decision._on_critical`.
Results = dict[str, FunctionResults]


class Survivor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mutant that no test can kill, or need kill, and why."""

    function: str
    change: str
    reason: str


def read_survivors(path: Path) -> list[Survivor]:
    """The list of survivors with their reasons."""
    listed = tomllib.loads(path.read_text("utf-8")).get("survivor", [])
    survivors = msgspec.convert(listed, list[Survivor])
    for survivor in survivors:
        if not survivor.reason.strip():
            raise SystemExit(f"mutants: {path.name}: {survivor.function}: give a reason")
    return survivors


def read_results(path: Path) -> Results:
    return msgspec.json.decode(path.read_bytes(), type=Results) if path.exists() else {}


def write_results(path: Path, results: Results) -> None:
    text = msgspec.json.format(msgspec.json.encode(dict(sorted(results.items()))), indent=1)
    path.write_bytes(text)


def problems(results: Results, listed: Iterable[Survivor]) -> list[str]:
    """Why `make mutants` fails, if it does."""
    reasons = {(survivor.function, survivor.change) for survivor in listed}
    found, tested, survivors = [], 0, 0
    for function, entry in sorted(results.items()):
        for change, result in entry.mutants.items():
            tested += result.status != TYPES
            survivors += result.survived
            if result.survived and (function, change) not in reasons:
                why = "no test calls it" if result.status == UNTESTED else "survived"
                found.append(f"{why}, and is not listed: {function}: {change}")
            if result.status == ERROR:
                found.append(f"could not be run: {function}: {change}")
    if survivors > tested * MOST_SURVIVORS:
        found.append(f"{survivors} of {tested} survived, which is more than {MOST_SURVIVORS:.0%}")
    return found


def outdated(results: Results, listed: Iterable[Survivor], modules: Iterable[str]) -> list[str]:
    """Which entries of the list no mutant of these modules bears out any more."""
    found = []
    for survivor in listed:
        if not any(survivor.function.startswith(f"{module}.") for module in modules):
            continue
        entry = results.get(survivor.function)
        result = entry.mutants.get(survivor.change) if entry else None
        if result is None:
            found.append(f"listed, but there is no such mutant: {survivor.function}: {survivor.change}")
        elif not result.survived:
            found.append(f"listed, but {result.status}: {survivor.function}: {survivor.change}")
    return found


def table(results: Results, modules: Iterable[str]) -> list[str]:
    """Counts by module, as a table in Markdown; `types` are the mutants that mypy rejects."""
    rows = [
        "| module | mutants | types | killed | timeout | survived | seconds |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    everything: list[Result] = []
    for module in modules:
        own = [
            result
            for function, entry in results.items()
            if function.startswith(f"{module}.")
            for result in entry.mutants.values()
        ]
        everything += own
        rows.append(_row(module, own))
    return [*rows, _row("all", everything)]


def _row(name: str, results: list[Result]) -> str:
    counts = [sum(result.status == status for result in results) for status in (TYPES, KILLED, TIMEOUT)]
    survived = sum(result.survived for result in results)
    seconds = sum(result.seconds for result in results)
    cells = (name, len(results), *counts, survived, f"{seconds:.0f}")
    return "| " + " | ".join(str(cell) for cell in cells) + " |"
