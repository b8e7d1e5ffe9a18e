"""`scan`: the static tier by itself, offline, on folders and archives: the same engine in the same processes as the
worker's, with the same budgets.
"""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import click

if TYPE_CHECKING:
    from vskill_platform.domain.content import SkillFile
    from vskill_platform.scan.pool import PooledScanner
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
    """Scan skills offline, on this machine.

    A PATH is a folder, an archive, or a tree with many skills. Every folder with a SKILL.md at or below a PATH is a
    skill. Exit code 0: all pass. 1: concerns. 2: a failure. 3: something could not be scanned to the end.
    """
    from vskill_platform.cli.local_skills import skills_at
    from vskill_platform.cli.process import run_async
    from vskill_platform.scan.report import exit_code

    places = [place for path in paths for place in skills_at(path)]
    scanned = run_async(_scan_all(places, processes))
    _print(scanned, form, output)
    raise SystemExit(int(exit_code(scanned)))


async def _scan_all(places: Sequence[Path], processes: int) -> "list[Scanned]":
    from vskill_platform.intake.manifest import read_manifest
    from vskill_platform.scan.pool import PooledScanner

    processes = processes or min(len(places), os.cpu_count() or 1)
    scanner = await PooledScanner.open(read_manifest, processes=processes)
    # Only as many skills are in memory as can be scanned at the same time.
    room = asyncio.Semaphore(2 * processes)
    try:
        with _Advance(len(places)) as advance:
            return await asyncio.gather(*(_scan_one(scanner, place, room, advance) for place in places))
    finally:
        await scanner.close()


async def _scan_one(
    scanner: "PooledScanner", place: Path, room: asyncio.Semaphore, advance: "_Advance"
) -> "Scanned":
    from vskill_platform.domain.errors import PlatformError
    from vskill_platform.domain.scan import ScanStatus, StaticReport
    from vskill_platform.scan.report import Scanned

    async with room:
        try:
            report = await scanner.scan(await asyncio.to_thread(_files, place))
        except PlatformError as error:
            report = StaticReport(scanner.ruleset, ScanStatus.ERROR, problem=error.message)
    advance()
    return Scanned(place.as_posix(), report)


def _files(place: Path) -> "tuple[SkillFile, ...]":
    from vskill_platform.cli.local_skills import read_file, read_folder

    return read_file(place) if place.is_file() else read_folder(place)


def _print(scanned: "Sequence[Scanned]", form: str, output: Path | None) -> None:
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
        click.echo(document)
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


class _Advance:
    """Counts skills that are done, where somebody watches."""

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        hidden = total < 2 or not sys.stderr.isatty()
        columns = ("scanning", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True, disable=hidden)
        self._task = self._progress.add_task("scanning", total=total)

    def __call__(self) -> None:
        self._progress.advance(self._task)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
