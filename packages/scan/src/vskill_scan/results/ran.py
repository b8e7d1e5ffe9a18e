"""What command lines run, install, send and delete, as entries of a card."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from vskill_core.capability import CapabilityContext, CapabilityKind, CapabilityUse
from vskill_scan.model import Layer
from vskill_scan.results import capability_words as known
from vskill_scan.results.acting_code import ActingCode
from vskill_scan.results.card_names import (
    addresses_in,
    hosts_of,
    installed_by,
    program_of,
    removed_paths,
    sends_something,
)
from vskill_scan.results.command_lines import CommandLine
from vskill_scan.results.fetched import FetchedFiles, FilePlace, run_at_once


class CardFind(NamedTuple):
    """One thing at one place."""

    kind: CapabilityKind
    value: str
    offset: int
    context: CapabilityContext
    shell: bool = False
    use: CapabilityUse | None = None


def ran(
    lines: Iterable[CommandLine],
    code: ActingCode,
    base: int,
    own: frozenset[str],
    layer: Layer,
    fetched: FetchedFiles,
) -> Iterator[CardFind]:
    """What command lines run, install, send and delete."""
    before: CommandLine | None = None
    for line in lines:
        at = base + line.offset
        program = program_of(line)
        for name in (*known.RAISING.intersection(line.starters), program):
            if name and name not in known.TAME and name not in own:
                yield CardFind(CapabilityKind.COMMAND, name, at, code.context, True)
        if program in known.INSTALLERS or program.startswith("python"):
            for package in installed_by(line, program):
                yield CardFind(CapabilityKind.INSTALL, package, at, code.context, True)
        elif program in known.TALKING:
            use = CapabilityUse.SENDS if sends_something(line, program) else None
            for host in addresses_in(line) if use else hosts_of(line, program):
                yield CardFind(CapabilityKind.HOST, host, at, code.context, True, use)
        for path in removed_paths(line, program):
            yield CardFind(CapabilityKind.FILE, path, at, code.context, True, CapabilityUse.DELETES)
        if before is not None and (source := run_at_once(before, line)):
            said = f"a script from {source} (run at once)"
            yield CardFind(CapabilityKind.INSTALL, said, at, code.context, True, CapabilityUse.RUNS)
            yield CardFind(CapabilityKind.HOST, source, at, code.context, True, CapabilityUse.RUNS)
        fetched.read(line, program, FilePlace(layer, code.start, at, code.context))
        before = line
