"""Hashes of a content that clients compute too. They are for the wire only, and nothing of ours depends on them:
content goes by its digest."""

import hashlib
from collections.abc import Iterable

from vskill_core.content import SkillFile

_BOM = "\ufeff"


def content_hash(skill_md: bytes) -> str:
    """SHA-256 of SKILL.md without a byte order mark and with LF line ends, as clients compute it."""
    return hashlib.sha256(_as_clients_read(skill_md)).hexdigest()


def tree_hash(files: Iterable[SkillFile]) -> str:
    """SHA-256 over the files in path order, each `path NUL normalised-bytes LF`."""
    total = hashlib.sha256()
    # The clients are JavaScript and sort by UTF-16 code units, which differs from code points above U+FFFF.
    for file in sorted(files, key=lambda file: file.path.encode("utf-16-be")):
        total.update(file.path.encode() + b"\0" + _as_clients_read(file.data) + b"\n")
    return total.hexdigest()


def _as_clients_read(data: bytes) -> bytes:
    """Clients read every file as UTF-8 text, so invalid bytes become U+FFFD here as well."""
    text = data.decode("utf-8", "replace")
    return text.removeprefix(_BOM).replace("\r\n", "\n").encode()
