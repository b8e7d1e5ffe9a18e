"""`scan`: what the registry would do with skills on this machine, offline: the same reading of the manifest, the same
engine in the same processes with the same budgets, and the same decision as the worker's.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
from msgspec.structs import replace

from vskill_client.output import print_document
from vskill_core.errors import PlatformError, Shortage
from vskill_core.findings import NO_JUDGE, ScanStatus, StaticReport
from vskill_core.folders import skills_at
from vskill_platform.cli.process import run_async
from vskill_platform.settings import process_settings

if TYPE_CHECKING:
    from vskill_platform.tiers.contract import Scanner
    from vskill_scan.results.forecast import Decided
    from vskill_scan.results.report import Scanned

T = TypeVar("T")


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    show_default=True,
    help="How to print the result.",
)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write it to this file instead."
)
@click.option(
    "--processes", type=click.IntRange(0, 256), default=0, help="How many processes scan; 0 is one per core."
)
def scan(*, paths: tuple[Path, ...], form: str, output: Path | None, processes: int) -> None:
    """Say what the registry would do with skills on this machine, offline.

    A PATH is a folder, an archive, or a tree with many skills. Every folder with a SKILL.md at or below a PATH is a
    skill, and one with the manifest of a plugin and no SKILL.md a plugin. The outcome is publish, review, fail, block,
    or refuse (for its form), with the reason and what to change.

    Exit code 0: all would be published. 1: one would wait for a reviewer. 2: one would fail, be blocked or be refused.
    3: one could not be scanned to the end.

    No judge is asked; a registry with one (VSKILL_JUDGE_URL) may decide otherwise. Known-bad content and indicators
    (VSKILL_KNOWN_BAD_DIGESTS, VSKILL_INDICATORS_FILE) are those of this machine's settings. Only the registry knows its
    policy (VSKILL_POLICY), its blocklist, what its reviewers decided, and the version before.
    """
    # Loaded before the loop runs: an import reads files.
    import vskill_platform.bootstrap  # noqa: F401
    from vskill_scan.command import print_scanned
    from vskill_scan.results.report import exit_code

    places = [place for path in paths for place in skills_at(path)]
    scanned = run_async(scan_all(places, processes, _foretell))
    print_scanned(scanned, form, output, print_document)
    raise SystemExit(int(exit_code(scanned)))


async def scan_all(
    places: Sequence[Path], processes: int, work: "Callable[[Scanner, Path], Awaitable[T]]"
) -> list[T]:
    """What `work` makes of each place with the scanner of a worker."""
    from vskill_platform.bootstrap import open_scanner
    from vskill_platform.cli.progress import work_visibly

    processes = processes or min(len(places), os.cpu_count() or 1)
    # Nothing is kept on this machine from one call to the next.
    settings = replace(process_settings(), store="memory:", scan_processes=processes)
    async with AsyncExitStack() as stack:
        scanner = await open_scanner(settings, stack)
        # Only as many skills are in memory as can be scanned at the same time.
        return await work_visibly("scanning", partial(work, scanner), places, 2 * processes)


async def _foretell(scanner: "Scanner", place: Path) -> "Scanned":
    from vskill_scan.command import foretell, foretell_unread, read_published

    try:
        files = await asyncio.to_thread(read_published, place)
    except PlatformError as error:
        return foretell_unread(place, scanner.ruleset, error)
    try:
        report = await scanner.scan(files)
    except Shortage as error:
        report = StaticReport(scanner.ruleset, ScanStatus.ERROR, problem=error.message)
    return await asyncio.to_thread(foretell, place, files, report, decide_unjudged)


def decide_unjudged(report: StaticReport) -> "Decided":
    """What this release decides where no judge is asked, in the author's words."""
    from vskill_platform.domain.submissions.states import State
    from vskill_platform.domain.verdicts.decision import decide
    from vskill_scan.results.forecast import Decided, Outcome

    outcomes = {
        State.AUTO_APPROVED: Outcome.PUBLISH,
        State.NEEDS_REVIEW: Outcome.REVIEW,
        State.TIER1_FAILED: Outcome.FAIL,
        State.BLOCKED: Outcome.BLOCK,
    }
    decision = decide(report, NO_JUDGE)
    return Decided(outcomes[decision.next_state], decision.reason, decision.rule_ids)
