"""The fingerprint that the `clawhub` command makes of a folder on its user's disk, made here of a version's files:
equal ones say which version the folder is."""

import hashlib

from vskill_core.content import FileEntry
from vskill_platform.domain.skills.skill import SkillVersion

#: ASCII as the client's `localeCompare` orders it, without regard to case.
_COLLATION = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"
_RANKS = {char: rank for rank, char in enumerate(_COLLATION)}


def fingerprints(record: SkillVersion) -> frozenset[str]:
    """As the client computes it: a hash over `path:sha256`, without hidden files, ordered as its language does.

    That order is known for ASCII; paths in other scripts are tried in the order of their code points, and where that
    is wrong the client falls back on what it noted when it installed.
    """
    shown = [one for one in record.manifest if not _is_hidden(one)]
    orders = (sorted(shown, key=_collation_key), sorted(shown, key=lambda one: one.path))
    texts = ["\n".join(f"{one.path}:{one.sha256}" for one in order) for order in orders]
    return frozenset(hashlib.sha256(text.encode()).hexdigest() for text in texts)


def _is_hidden(entry: FileEntry) -> bool:
    return any(part.startswith(".") for part in entry.path.split("/"))


def _collation_key(entry: FileEntry) -> tuple[list[tuple[int, int]], list[bool]]:
    """First by characters without case, then lower case before upper."""
    ranks = [(_RANKS.get(char, len(_RANKS)), ord(char)) for char in entry.path.lower()]
    plain = [(rank, 0 if rank < len(_RANKS) else point) for rank, point in ranks]
    return plain, [char.isupper() for char in entry.path]
