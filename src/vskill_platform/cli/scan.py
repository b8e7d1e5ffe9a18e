"""`scan`: what the registry would do with skills on this machine, offline: the same reading of the manifest, the same
engine in the same processes with the same budgets, and the same decision as the worker's.
"""

import asyncio
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from vskill_platform.cli.progress import Advance
    from vskill_platform.domain.content import SkillFile
    from vskill_platform.scan.contract import Scanner
    from vskill_platform.scan.report import Scanned


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
    skill. The outcome is publish, review, fail, block, or refuse (for its form), with the reason and what to change.

    Exit code 0: all would be published. 1: one would wait for a reviewer. 2: one would fail, be blocked or be refused.
    3: one could not be scanned to the end.

    No judge is asked; a registry with one (VSKILL_JUDGE_URL) may decide otherwise. Known-bad content and indicators
    (VSKILL_KNOWN_BAD_DIGESTS, VSKILL_INDICATORS_FILE) are those of this machine's settings. Only the registry knows its
    trusted vendors (VSKILL_TRUSTED_OWNERS), its blocklist, what its reviewers decided, and the version before.
    """
    # Loaded before the loop runs: an import reads files.
    import vskill_platform.bootstrap  # noqa: F401
    from vskill_platform.cli.local_skills import skills_at
    from vskill_platform.cli.process import run_async
    from vskill_platform.scan.report import exit_code

    places = [place for path in paths for place in skills_at(path)]
    scanned = run_async(_scan_all(places, processes))
    _print(scanned, form, output)
    raise SystemExit(int(exit_code(scanned)))


async def _scan_all(places: Sequence[Path], processes: int) -> "list[Scanned]":
    from msgspec.structs import replace

    from vskill_platform.bootstrap import open_scanner
    from vskill_platform.cli.progress import Advance
    from vskill_platform.settings import process_settings

    processes = processes or min(len(places), os.cpu_count() or 1)
    # Nothing is kept on this machine from one call to the next.
    settings = replace(process_settings(), store="memory:", scan_processes=processes)
    # Only as many skills are in memory as can be scanned at the same time.
    room = asyncio.Semaphore(2 * processes)
    async with AsyncExitStack() as stack:
        scanner = await open_scanner(settings, stack)
        with Advance("scanning", len(places)) as advance:
            return await asyncio.gather(*(_scan_one(scanner, place, room, advance) for place in places))


async def _scan_one(
    scanner: "Scanner", place: Path, room: asyncio.Semaphore, advance: "Advance"
) -> "Scanned":
    async with room:
        scanned = await _foretell(scanner, place)
    advance()
    return scanned


async def _foretell(scanner: "Scanner", place: Path) -> "Scanned":
    """What the registry would do. Files that it would refuse are scanned all the same, where they can be read."""
    from vskill_platform.domain.errors import PlatformError, Shortage
    from vskill_platform.domain.scan import ScanStatus, StaticReport
    from vskill_platform.intake.manifest import admit_skill
    from vskill_platform.scan import forecast
    from vskill_platform.scan.report import Scanned

    path = place.as_posix()
    try:
        name, files = await asyncio.to_thread(_read, place)
    except PlatformError as error:
        report = StaticReport(scanner.ruleset, ScanStatus.ERROR, problem=error.message)
        # A file that this machine does not let us read says nothing about the registry.
        is_local = isinstance(error.__cause__, OSError)
        told = forecast.unreadable(error) if is_local else forecast.refused(error)
        return Scanned(path, report, told)
    try:
        report = await scanner.scan(files)
    except Shortage as error:
        report = StaticReport(scanner.ruleset, ScanStatus.ERROR, problem=error.message)
    try:
        manifest = admit_skill(files, name)
    except PlatformError as error:
        return Scanned(path, report, forecast.refused(error))
    return Scanned(path, report, forecast.forecast(report, manifest.name))


def _read(place: Path) -> "tuple[str, tuple[SkillFile, ...]]":
    """What the skill would be called in its namespace, and its files."""
    from vskill_platform.cli.local_skills import read_file, read_folder, skill_name_at

    files = read_file(place) if place.is_file() else read_folder(place)
    return skill_name_at(place), files


def _print(scanned: "Sequence[Scanned]", form: str, output: Path | None) -> None:
    from vskill_platform.cli.output import print_document
    from vskill_platform.scan import report
    from vskill_platform.scan.ruleset import bundled_rules

    if form == "text":
        _print_text(scanned, output)
        return
    document = (
        report.as_sarif(scanned, bundled_rules())
        if form == "sarif"
        else report.as_json(scanned, bundled_rules().version)
    )
    if output is None:
        print_document(document)
    else:
        output.write_bytes(document + b"\n")


def _print_text(scanned: "Sequence[Scanned]", output: Path | None) -> None:
    from rich.console import Console

    from vskill_platform.cli.output import PIPE_WIDTH, console
    from vskill_platform.scan.report import text

    if output is None:
        console().print(text(scanned))
        return
    with output.open("w", encoding="utf-8") as file:
        Console(file=file, width=PIPE_WIDTH, highlight=False).print(text(scanned))
