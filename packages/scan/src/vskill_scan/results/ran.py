"""The code of a text that a machine or an agent runs, and what its command lines run, install, send and delete, as
entries of a card."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from vskill_core.capability import CapabilityContext, CapabilityKind, CapabilityUse
from vskill_scan.model import Layer, TextRole
from vskill_scan.results import capability_words as known
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


class ActingCode(msgspec.Struct, frozen=True, gc=False):
    """A stretch of a layer that a machine or an agent runs."""

    start: int
    end: int
    language: str
    context: CapabilityContext


def acting_code(layer: Layer) -> Iterator[ActingCode]:
    """The code of a layer, in order. In prose it is what an agent is told to run."""
    if layer.decoded:
        if layer.roles.isdisjoint({TextRole.QUOTE, TextRole.DATA, TextRole.TEST}):
            yield ActingCode(0, len(layer.text), "bash", CapabilityContext.CODE)
        return
    in_prose = TextRole.FOLLOW in layer.roles
    loads = TextRole.LOAD in layer.roles
    end = 0
    for block in layer.blocks:
        if block.start < end:
            continue
        end = block.end
        context = CapabilityContext.CODE
        if in_prose and not (loads and layer.piece_at(block.start).role is TextRole.LOAD):
            context = CapabilityContext.INSTRUCTION
        yield ActingCode(block.start, block.end, block.language, context)


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
