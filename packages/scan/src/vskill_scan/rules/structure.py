"""What the engine checks of a skill as a whole: is it one by the specification, which binaries does it carry, and is it
content that the operator knows to be bad. These rules need no text and no examples, so they stand here as code.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Protocol

import msgspec

from vskill_core.content import SkillFile, digest_of_files
from vskill_core.errors import InvalidManifest
from vskill_core.findings import (
    Finding,
    FindingCategory,
    FindingKind,
    Severity,
)
from vskill_core.form import FormNote
from vskill_core.identity import SKILL_FILE


class ReadForm(Protocol):
    """What a SKILL.md was read as."""

    @property
    def notes(self) -> tuple[FormNote, ...]: ...


#: Reads a SKILL.md, or raises InvalidManifest.
CheckManifest = Callable[[bytes], ReadForm | None]

#: An agent reads all of SKILL.md before it starts; the specification advises to stay below this.
SKILL_LINES = 500
LARGE_FILE_BYTES = 1024 * 1024

#: How files that a machine executes begin.
BINARY_TYPES: tuple[tuple[bytes, str], ...] = (
    (b"\x7fELF", "ELF program or library"),
    (b"MZ", "Windows program or library"),
    (b"\xfe\xed\xfa\xce", "Mach-O program or library"),
    (b"\xfe\xed\xfa\xcf", "Mach-O program or library"),
    (b"\xce\xfa\xed\xfe", "Mach-O program or library"),
    (b"\xcf\xfa\xed\xfe", "Mach-O program or library"),
    (b"\xca\xfe\xba\xbe", "Java class or universal Mach-O program"),
    (b"\x00asm", "WebAssembly module"),
    (b"dex\n", "Android program"),
)

#: How files begin that hold pictures, sound, fonts, documents or archives: bytes, but no secret what they are.
KNOWN_MEDIA = (
    b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"BM", b"\x00\x00\x01\x00", b"%PDF", b"PK\x03\x04",
    b"PK\x05\x06", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"Rar!", b"wOFF", b"wOF2", b"OTTO",
    b"\x00\x01\x00\x00", b"true", b"ttcf", b"ID3", b"OggS", b"fLaC", b"\xff\xfb", b"SQLite format 3",
    b"\xd0\xcf\x11\xe0", b"II*\x00", b"MM\x00*", b"\xff\xfe", b"\xfe\xff", b"glTF", b"Bud1",
    b"\x00\x00\x00\x01Bud1", b"\x1aE\xdf\xa3",
)  # fmt: skip
KNOWN_BOXES = (b"ftyp", b"jP  ", b"Bud1")
#: Bytes in which a NUL makes a file a binary one.
OPAQUE_WINDOW = 8192


class Rule(msgspec.Struct, frozen=True):
    """One thing that this tier looks for."""

    id: str
    severity: Severity
    category: FindingCategory
    kind: FindingKind
    #: why it matters
    why: str
    #: what the author can do about it
    remedy: str
    certain: bool = False

    def found(self, file: str = "", *, line: int = 0, excerpt: str = "", remedy: str = "") -> Finding:
        return Finding(
            rule_id=self.id,
            severity=self.severity,
            category=self.category,
            kind=self.kind,
            file=file,
            line=line,
            excerpt=excerpt,
            why=self.why,
            remedy=remedy or self.remedy,
            certain=self.certain,
        )


NO_SKILL_FILE = Rule(
    "ST-001",
    Severity.HIGH,
    FindingCategory.STRUCTURE,
    FindingKind.MISMATCH,
    why="Without SKILL.md at its root a folder is no skill.",
    remedy="Put SKILL.md, written exactly so, at the root of the skill's folder.",
)
BAD_MANIFEST = Rule(
    "ST-002",
    Severity.HIGH,
    FindingCategory.STRUCTURE,
    FindingKind.MISMATCH,
    why="No client can read a SKILL.md that is empty, is not UTF-8 text, or has a huge front matter.",
    remedy="Correct SKILL.md.",
)
LONG_SKILL_FILE = Rule(
    "ST-003",
    Severity.LOW,
    FindingCategory.STRUCTURE,
    FindingKind.CAPABILITY,
    why=f"An agent loads all of SKILL.md; the specification advises fewer than {SKILL_LINES} lines.",
    remedy="Move details into files of their own that SKILL.md refers to.",
)
BINARY = Rule(
    "ST-004",
    Severity.MEDIUM,
    FindingCategory.STRUCTURE,
    FindingKind.CAPABILITY,
    why="What a compiled program does cannot be read by the person who installs it.",
    remedy="Ship the source, or name where the program comes from.",
)
LARGE_FILE = Rule(
    "ST-005",
    Severity.LOW,
    FindingCategory.STRUCTURE,
    FindingKind.CAPABILITY,
    why=f"A file over {LARGE_FILE_BYTES} bytes is rarely instructions or code.",
    remedy="Leave it out, or make it smaller.",
)
OPAQUE = Rule(
    "ST-006",
    Severity.LOW,
    FindingCategory.STRUCTURE,
    FindingKind.CAPABILITY,
    why="A binary file of an unknown type can hold anything, and nobody can read it.",
    remedy="Say in SKILL.md what it is, or leave it out.",
)


COMPILED = Rule(
    "ST-007",
    Severity.HIGH,
    FindingCategory.OBFUSCATION,
    FindingKind.MALICE,
    why="Compiled Python without its source runs like any script, and nobody can read what it does.",
    remedy="Ship the source. Leave out compiled files.",
)


BAD_PLUGIN = Rule(
    "ST-008",
    Severity.LOW,
    FindingCategory.STRUCTURE,
    FindingKind.CAPABILITY,
    why="Clients refuse a plugin whose manifest they cannot read, and nobody reads a card of so many parts.",
    remedy="Correct the manifest.",
)
MANIFESTS_DISAGREE = Rule(
    "ST-009",
    Severity.MEDIUM,
    FindingCategory.STRUCTURE,
    FindingKind.MISMATCH,
    why="Where two manifests differ, each client takes the plugin for something else.",
    remedy="Write the same into both manifests.",
)
PART_SKIPPED = Rule(
    "ST-010",
    Severity.LOW,
    FindingCategory.STRUCTURE,
    FindingKind.CAPABILITY,
    why="Clients skip parts of a plugin, and ignore fields, that do not fit the form.",
    remedy="Correct the part, or leave it out.",
)
SECRET_SHIPPED = Rule(
    "ST-011",
    Severity.MEDIUM,
    FindingCategory.STRUCTURE,
    FindingKind.MISMATCH,
    why="What a plugin sends or sets is read by everybody who can read the plugin.",
    remedy="Take the value from the user's environment, and replace it where it is valid.",
)


def _listed_by_operator(rule_id: str, what: str) -> Rule:
    return Rule(
        rule_id,
        Severity.CRITICAL,
        FindingCategory.KNOWN_BAD,
        FindingKind.MALICE,
        why=f"The operator has listed {what} as malicious.",
        remedy="Do not use it.",
        certain=True,
    )


KNOWN_BAD = _listed_by_operator("KB-001", "exactly this content")
LISTED_ADDRESS = _listed_by_operator("KB-002", "this host or account")
LISTED_FILE = _listed_by_operator("KB-003", "exactly this file")

RULES = (
    NO_SKILL_FILE,
    BAD_MANIFEST,
    LONG_SKILL_FILE,
    BINARY,
    LARGE_FILE,
    OPAQUE,
    COMPILED,
    BAD_PLUGIN,
    MANIFESTS_DISAGREE,
    PART_SKIPPED,
    SECRET_SHIPPED,
    KNOWN_BAD,
    LISTED_ADDRESS,
    LISTED_FILE,
)


def findings(
    files: Sequence[SkillFile],
    check_manifest: CheckManifest,
    known_bad: Collection[str],
    notes: list[FormNote],
    *,
    may_lack_it: bool = False,
) -> Iterator[Finding]:
    """Looks at the whole skill at once; `check_manifest` raises InvalidManifest for a SKILL.md that is refused. What
    its author should correct goes to `notes`."""
    if known_bad and (digest := digest_of_files(files)) in known_bad:
        yield KNOWN_BAD.found(excerpt=digest)
    if not may_lack_it or any(file.path == SKILL_FILE for file in files):
        yield from _skill_file(files, check_manifest, notes)
    for file in files:
        yield from _file_findings(file)
    yield from _compiled_files({file.path for file in files})


def _compiled_files(paths: Collection[str]) -> Iterator[Finding]:
    """Compiled Python that has no source beside it."""
    for path in sorted(paths):
        folder, _, name = path.rpartition("/")
        if not name.endswith((".pyc", ".pyo")):
            continue
        place = folder.removesuffix("__pycache__").rstrip("/")
        source = f"{place}/{name.split('.')[0]}.py".lstrip("/")
        if source not in paths:
            yield COMPILED.found(path, excerpt=f"no {source}")


def _skill_file(
    files: Sequence[SkillFile], check_manifest: CheckManifest, notes: list[FormNote]
) -> Iterator[Finding]:
    skill_md = next((file for file in files if file.path == SKILL_FILE), None)
    if skill_md is None:
        yield NO_SKILL_FILE.found()
        return
    try:
        read = check_manifest(skill_md.data)
        notes.extend(read.notes if read is not None else ())
    except InvalidManifest as error:
        line = error.details.get("line")
        yield BAD_MANIFEST.found(SKILL_FILE, line=line if isinstance(line, int) else 0, remedy=error.message)
    lines = skill_md.data.count(b"\n") + 1
    if lines > SKILL_LINES:
        yield LONG_SKILL_FILE.found(SKILL_FILE, excerpt=f"{lines} lines")


def listed_files(path: str, data: bytes, known_files: Collection[str]) -> Iterator[Finding]:
    """Whether the operator has listed the file by its hash."""
    if known_files and (digest := hashlib.sha256(data).hexdigest()) in known_files:
        yield LISTED_FILE.found(path, excerpt=f"sha256 {digest}")


def binary_type(data: bytes) -> str | None:
    """What kind of executable the bytes are, told by how they begin; None for anything else."""
    # Two letters do not make a text a Windows program: its header also holds zero bytes.
    if data.startswith(b"MZ") and b"\0" not in data[:64]:
        return None
    return next((name for magic, name in BINARY_TYPES if data.startswith(magic)), None)


def binary_findings(path: str, data: bytes) -> Iterator[Finding]:
    """What to say of a file that is no text."""
    if (kind := binary_type(data)) is not None:
        yield BINARY.found(path, excerpt=_describe(kind, data))
    elif b"\0" in data[:OPAQUE_WINDOW] and not data.startswith(KNOWN_MEDIA) and data[4:8] not in KNOWN_BOXES:
        yield OPAQUE.found(path, excerpt=_describe("unknown binary", data))


def _describe(kind: str, data: bytes) -> str:
    return f"{kind}, {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}"


def _file_findings(file: SkillFile) -> Iterator[Finding]:
    if len(file.data) > LARGE_FILE_BYTES:
        yield LARGE_FILE.found(file.path, excerpt=f"{len(file.data)} bytes")
