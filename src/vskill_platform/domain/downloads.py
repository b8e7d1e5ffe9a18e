"""The archives in which a version is downloaded: a tar.gz, as the client makes it too, and a zip by the same rules: its
bytes depend on the files alone, for attestations name the SHA-256 of both. SKILL.md is at the root."""

import hashlib
import struct
import zlib
from collections.abc import Iterable

import msgspec

from vskill_core.archives import sort_files, tar_archive
from vskill_core.content import SkillFile, skill_file_of

ZIP_TYPE = "application/zip"
TAR_TYPE = "application/gzip"

#: 1980-01-01 00:00, the earliest time of a zip: time, then date.
_ZIP_EPOCH = (0, 0x0021)
#: Names are UTF-8.
_ZIP_UTF8 = 0x0800
#: Version 2.0 is enough to read it; 3 in the upper byte says that attributes are Unix modes.
_ZIP_NEEDS, _ZIP_MADE_BY = 20, (3 << 8) | 20


class ArchiveDigests(msgspec.Struct, frozen=True):
    """SHA-256 of both archives of one content, hex."""

    zip: str
    tar_gz: str


class Artifact(msgspec.Struct, frozen=True):
    """How a content is handed out in one piece."""

    #: only SKILL.md, so that file itself; otherwise a zip
    is_plain: bool
    #: of exactly the bytes served, hex
    sha256: str


def archive_digests(files: Iterable[SkillFile]) -> ArchiveDigests:
    files = tuple(files)
    return ArchiveDigests(
        hashlib.sha256(zip_archive(files)).hexdigest(), hashlib.sha256(tar_archive(files)).hexdigest()
    )


def artifact_of(files: Iterable[SkillFile], digests: ArchiveDigests) -> Artifact:
    files = tuple(files)
    if len(files) == 1:
        return Artifact(True, hashlib.sha256(skill_file_of(files).data).hexdigest())
    return Artifact(False, digests.zip)


def zip_archive(files: Iterable[SkillFile]) -> bytes:
    """The files as a zip; `NoSkillFound` where they are no skill and no plugin."""
    body, directory = bytearray(), bytearray()
    ordered = sort_files(files)
    for file in ordered:
        name, facts = file.path.encode(), _zip_facts(file)
        mode = int(file.mode, 8) << 16
        central = struct.pack("<4sH", b"PK\x01\x02", _ZIP_MADE_BY) + facts
        directory += central + struct.pack("<HHHII", 0, 0, 0, mode, len(body)) + name
        body += b"PK\x03\x04" + facts + name + file.data
    count = len(ordered)
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, count, count, len(directory), len(body), 0)
    return bytes(body + directory + end)


def _zip_facts(file: SkillFile) -> bytes:
    """The fields that an entry and its directory entry share: both sizes are equal, and there is no extra field."""
    size, name = len(file.data), file.path.encode()
    head = struct.pack("<HHHHH", _ZIP_NEEDS, _ZIP_UTF8, 0, *_ZIP_EPOCH)
    return head + struct.pack("<IIIHH", zlib.crc32(file.data), size, size, len(name), 0)
