"""`vskill-scan`: what a registry would do with skills on this machine, and what to change. It needs no registry and no
network. `vskill-platform scan` is the same with the registry's settings, child processes and decision."""

import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import click
from rich.console import Console

from vskill_core.content import SkillFile
from vskill_core.errors import PlatformError
from vskill_core.findings import ScanStatus, StaticReport
from vskill_core.folders import read_place, skill_name_at, skills_at
from vskill_core.kind import kind_of
from vskill_core.release import __version__
from vskill_scan.engine import Engine
from vskill_scan.memory.memory import packaged_memory
from vskill_scan.memory.notices import notices_of
from vskill_scan.plugins.completed import complete
from vskill_scan.reading.manifest import admit_skill, read_manifest
from vskill_scan.results.forecast import Decide, decide_alone, forecast, refused, unreadable
from vskill_scan.results.report import Scanned, as_json, as_sarif, exit_code, text
from vskill_scan.rules.ruleset import bundled_rules

#: Of what goes to a file or a pipe: wider than any line, so that nothing is folded.
PIPE_WIDTH = 100_000


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
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
@click.version_option(__version__, prog_name="vskill-scan")
def main(*, paths: tuple[Path, ...], form: str, output: Path | None) -> None:
    """Say what a registry would do with skills on this machine, offline.

    A PATH is a folder, an archive, or a tree with many skills. Every folder with a SKILL.md at or below a PATH is a
    skill, and one with the manifest of a plugin and no SKILL.md a plugin. The outcome is publish, review, fail, block,
    or refuse (for its form), with the reason and what to change.

    Exit code 0: all would be published. 1: one would wait for a reviewer. 2: one would fail, be blocked or be refused.
    3: one could not be scanned to the end.
    """
    engine = Engine(bundled_rules(), read_manifest)
    scanned = [_scan(engine, place) for path in paths for place in skills_at(path)]
    print_scanned(scanned, form, output)
    raise SystemExit(int(exit_code(scanned)))


def _scan(engine: Engine, place: Path) -> Scanned:
    try:
        files = read_published(place)
    except PlatformError as error:
        return foretell_unread(place, engine.version, error)
    return foretell(place, files, engine.scan(files), decide_alone)


def read_published(place: Path) -> tuple[SkillFile, ...]:
    """The files of a place as a registry would publish them."""
    files = read_place(place)
    return complete(files, skill_name_at(place), kind_of(files))


def foretell(place: Path, files: Sequence[SkillFile], report: StaticReport, decide: Decide) -> Scanned:
    """What would become of these files. Those that a registry would refuse were scanned all the same."""
    try:
        manifest = admit_skill(files, skill_name_at(place))
    except PlatformError as error:
        return Scanned(place.as_posix(), report, refused(error))
    noticed = notices_of(packaged_memory(), manifest.name, files, report)
    return Scanned(place.as_posix(), report, forecast(report, manifest.name, decide(report), noticed))


def foretell_unread(place: Path, ruleset: str, error: PlatformError) -> Scanned:
    """What would become of a skill that was not read."""
    report = StaticReport(ruleset, ScanStatus.ERROR, problem=error.message)
    # A file that this machine does not let us read says nothing about the registry.
    is_local = isinstance(error.__cause__, OSError)
    return Scanned(place.as_posix(), report, unreadable(error) if is_local else refused(error))


def print_scanned(
    scanned: Sequence[Scanned],
    form: str,
    output: Path | None,
    write: Callable[[bytes], object] = click.echo,
) -> None:
    """Into a file, or to stdout; `write` puts a document and a line end there."""
    if form == "text":
        out = contextlib.nullcontext(sys.stdout) if output is None else output.open("w", encoding="utf-8")
        with out as file:
            width = None if file.isatty() else PIPE_WIDTH
            Console(file=file, width=width, highlight=False).print(text(scanned))
        return
    rules = bundled_rules()
    document = as_sarif(scanned, rules) if form == "sarif" else as_json(scanned, rules.version)
    if output is None:
        write(document)
    else:
        output.write_bytes(document + b"\n")


if __name__ == "__main__":
    main()
