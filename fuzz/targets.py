"""What is fuzzed: for each target a function from bytes to nothing, which raises where a promise is broken.

The platform's own errors are answers, not faults. Everything else that comes out, and every violated promise, is a
finding.
"""

import json
from collections.abc import Callable
from functools import cache

from fuzz import scan_targets
from fuzz.promises import hold
from fuzz.scan_targets import pieces_of
from vskill_core.archive_reading import read_archive
from vskill_core.content import DEFAULT_LIMITS, SkillFile, check_files, digest_of_files
from vskill_core.errors import PlatformError
from vskill_core.findings import ScanStatus
from vskill_core.identity import Identity, has_control_characters, normalise, submission_id
from vskill_core.naming import is_plain_name
from vskill_platform.domain.packed_content import pack, unpack
from vskill_scan.engine import Engine
from vskill_scan.reading.decode import decoded_layers
from vskill_scan.reading.manifest import DESCRIPTION_LENGTH, read_manifest
from vskill_scan.reading.segments import segment_file
from vskill_scan.reading.visible_text import decode_text, normalise_text
from vskill_scan.rules.ruleset import bundled_rules

Target = Callable[[bytes], None]

#: Between the parts of an input that has several.
SEPARATOR = b"\x00\xfe\x00"


#: What must be scanned within the budget whatever it is; a larger one may end as timed out, which is never clean.
SMALL_BYTES = 64 * 1024


def manifest(data: bytes) -> None:
    """A SKILL.md is read, with a note on what was taken instead, or refused; each with a line and a fix."""
    try:
        found = read_manifest(data)
    except PlatformError as error:
        hold(isinstance(error.details.get("line"), int), "a refusal names its line")
        hold(bool(error.details.get("fix")), "a refusal names its fix")
        return
    hold(is_plain_name(found.name), "a name is one that every client accepts")
    hold(all(note.line > 0 and note.sentence and note.fix for note in found.notes), "a note has line and fix")
    hold(0 < len(found.description) <= DESCRIPTION_LENGTH, "a description is within its length")
    hold(found == read_manifest(data), "the same bytes are the same manifest")


#: What a file is called decides how it is cut; the first byte of an input chooses.
PATHS = (
    "SKILL.md",
    "scripts/a.py",
    "scripts/a.sh",
    "scripts/a.js",
    "a.ts",
    "notes.txt",
    "a.json",
    "tests/a.md",
)


def markdown(data: bytes) -> None:
    """Pieces lie in the text, in order and without overlap, whatever the text is."""
    path = PATHS[data[0] % len(PATHS)] if data else PATHS[0]
    text = decode_text(data[1:])
    if text is None:
        return
    layer = segment_file(path, normalise_text(text))
    for _ in pieces_of(layer):
        pass
    for _ in decoded_layers(layer.text):
        pass


def archive(data: bytes) -> None:
    """What is read from an archive is within every limit; what is not is refused."""
    try:
        files = read_archive(data)
    except PlatformError:
        return
    hold(len(files) <= DEFAULT_LIMITS.files, "no more files than the limit")
    hold(sum(len(file.data) for file in files) <= DEFAULT_LIMITS.bytes_total, "no more bytes than the limit")
    check_files(files)
    hold(digest_of_files(unpack(pack(files))) == digest_of_files(files), "packed and unpacked are the same")


def url(data: bytes) -> None:
    """An address is refused, or normalised once and for all."""
    address, _, path = data.partition(SEPARATOR)
    try:
        found = normalise(address.decode("utf-8", "surrogateescape"), path.decode("utf-8", "surrogateescape"))
    except PlatformError:
        return
    _check_identity(found)
    again = normalise(found.url, found.path)
    hold(again.key == found.key, "normalising what was normalised changes nothing")
    hold(submission_id(again) == submission_id(found), "one place is one submission")


def _check_identity(found: Identity) -> None:
    for part in (found.host, found.owner, found.repo, found.path, found.url):
        hold(not has_control_characters(part), "no control characters in an identity")
    hold(".." not in found.path.split("/"), "a path leads nowhere but down")
    hold(not found.path.startswith("/"), "a path is relative")


@cache
def _engine() -> Engine:
    """Compiled once, before anything is timed."""
    return Engine(bundled_rules(), read_manifest)


def scanner(data: bytes) -> None:
    """Whatever a skill holds, it is scanned to a report that can be written down."""
    first, *rest = data.split(SEPARATOR)
    files = [SkillFile("SKILL.md", "100644", first)]
    for number, part in enumerate(rest[: len(PATHS) - 1], start=1):
        files.append(SkillFile(f"{number}/{PATHS[number]}", "100755" if number % 2 else "100644", part))
    report = _engine().scan(tuple(files))
    hold(report.status is not ScanStatus.ERROR, f"the scanner does not fail: {report.problem}")
    small = len(data) <= SMALL_BYTES
    hold(
        not small or report.status is not ScanStatus.TIMED_OUT, f"a small skill is in time: {report.problem}"
    )
    names = {file.path for file in files}
    for finding in report.findings:
        hold(finding.line >= 0 and finding.column >= 0, "a place is counted from 1")
        hold(not finding.file or finding.file.split("!")[0] in names, "a finding names a file of the skill")
        json.dumps([finding.file, finding.excerpt, finding.why]).encode("utf-8")


TARGETS: dict[str, Target] = {
    "manifest": manifest,
    "markdown": markdown,
    "archive": archive,
    "url": url,
    "scanner": scanner,
    "code": scan_targets.code,
    "carrier": scan_targets.carrier,
}
