"""What PostgreSQL did for a question: the costliest of its statements, as the server explains it after running it, and
the page of the documentation that shows the plans of both sizes one below the other."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from bench.postgres_questions import Question
from vskill_platform.broker.postgres import PostgresBroker
from vskill_platform.database.postgres import PostgresDatabase
from vskill_platform.env import Env

_EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY ON) "
_METHODS = ("fetch", "fetch_once", "fetchrow", "fetchval")
_NODE = re.compile(r"^(\s*)->  ")
#: Of no interest here: planning, how sorts and hashes were kept, and the condition that all questions share.
_NOISE = re.compile(
    r"^\s*(Planning|Index Searches|Sort Method|Batches|Query Identifier|Filter: \(\(expires_at IS NULL\))"
)
_PAGES = re.compile(r"^\s*Buffers: ")
_LONG = 150

_HEAD = """# Query plans

What PostgreSQL does for the questions that pages and clients ask most, among {small:,} and among {large:,} submissions
(a fifth of them published as skills), with 100 stuck ones in each: `EXPLAIN (ANALYZE, BUFFERS)` of the costliest
statement of each question. Written by `python -m bench.postgres_scale --write-docs`, whose times stand in the first
table; `python -m bench.postgres_scale --quick` is a smaller run.

`shared hit` and `read` are pages of 8 KB that the server looked at: they are what must not grow.

{machine}
"""


class Plan(msgspec.Struct, frozen=True):
    """A statement and what was done for it."""

    statement: str
    lines: tuple[str, ...]

    @property
    def pages(self) -> int:
        """Pages that were looked at, by the outermost node."""
        found = next((line for line in self.lines if "Buffers: shared" in line), "")
        return sum(int(number) for number in re.findall(r"(?:hit|read)=(\d+)", found))


class Plans(msgspec.Struct, frozen=True):
    """The plans of every question that has its reason, for the small and the large store."""

    small: int
    large: int
    found: Mapping[str, tuple[Plan, Plan]]
    because: Mapping[str, str]


@contextmanager
def recorded(database: PostgresDatabase) -> Iterator[list[tuple[float, str, tuple[object, ...]]]]:
    """Every statement that goes through, with its arguments and the seconds that it took."""
    seen: list[tuple[float, str, tuple[object, ...]]] = []

    def watched(method: Any) -> Any:
        async def call(statement: str, *arguments: object) -> Any:
            began = time.perf_counter()
            answer = await method(statement, *arguments)
            seen.append((time.perf_counter() - began, statement, arguments))
            return answer

        return call

    for name in _METHODS:
        setattr(database, name, watched(getattr(database, name)))
    try:
        yield seen
    finally:
        for name in _METHODS:
            delattr(database, name)


async def explain(env: Env, question: Question) -> Plan:
    """The plan of the question's costliest statement, run once more."""
    assert isinstance(env.broker, PostgresBroker)
    database = env.broker.database
    await question.ask()
    with recorded(database) as seen:
        await question.ask()
    _, statement, arguments = max(seen, key=lambda one: one[0])
    rows = await database.fetch(_EXPLAIN + statement, *arguments)
    return Plan(statement, tuple(_shortened([row[0] for row in rows])))


def _shortened(lines: Sequence[str]) -> Iterator[str]:
    kept = [line for line in lines if not _NOISE.match(line)]
    told = False
    for line in _folded(kept):
        # The outermost node's pages are those of all below it.
        if not (told and _PAGES.match(line)):
            yield line if len(line) <= _LONG else line[:_LONG] + " …"
        told = told or _PAGES.match(line) is not None


def _folded(lines: list[str]) -> list[str]:
    """Of the equal parts of a union, the first that found something; the others are counted."""
    start = next((n for n, line in enumerate(lines) if re.match(r"\s*->  (Append|Merge Append)", line)), None)
    if start is None:
        return lines
    depth = _depth(lines[start])
    end = next(
        (
            n
            for n in range(start + 1, len(lines))
            if 0 <= _depth(lines[n]) <= depth or not lines[n].startswith(" ")
        ),
        len(lines),
    )
    parts = _parts(lines[start + 1 : end])
    if len(parts) <= 3:
        return lines
    shown = max(parts[1:], key=lambda part: _rows(part[0]))
    note = f"{' ' * (depth + 6)}(and {len(parts) - 2} more parts of the same form)"
    return [*lines[: start + 1], *parts[0], *shown, note, *lines[end:]]


def _parts(lines: list[str]) -> list[list[str]]:
    """What stands directly below a node: first its own remarks, then each part."""
    depth = min((_depth(line) for line in lines if _depth(line) >= 0), default=0)
    parts: list[list[str]] = [[]]
    for line in lines:
        if _depth(line) == depth:
            parts.append([])
        parts[-1].append(line)
    return parts


def _depth(line: str) -> int:
    found = _NODE.match(line)
    return len(found.group(1)) if found else -1


def _rows(line: str) -> int:
    found = re.search(r"rows=(\d+)", line)
    return int(found.group(1)) if found else 0


def to_markdown(plans: Plans, machine: str, table: str) -> str:
    parts = [_HEAD.format(small=plans.small, large=plans.large, machine=machine), table]
    for name, (small, large) in plans.found.items():
        parts.append(f"\n## {name[0].upper()}{name[1:]}\n\n{plans.because[name]}")
        for count, plan in ((plans.small, small), (plans.large, large)):
            parts.append(
                f"\nAmong {count:,}, {plan.pages:,} pages:\n\n```text\n" + "\n".join(plan.lines) + "\n```"
            )
    return "\n".join(parts) + "\n"
