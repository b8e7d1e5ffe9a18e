"""Who may read a record. Each skill and submission has one audience, and a reader has a set of them: a question to the
store finds the records whose audience is in the set, and no others.

Who belongs to an audience is not in the record but in its namespace, so that a change of visibility is one write.
"""

import enum
from collections.abc import Iterable
from typing import TypeAlias


class Everything(enum.Enum):
    """What the system itself reads by: every record, whatever its audience."""

    EVERYTHING = "everything"


#: Only the modules that a house rule lists may name it (`tools/code_rules.py`).
EVERYTHING = Everything.EVERYTHING

#: Names of the audiences that one reader has, or everything.
Audiences: TypeAlias = frozenset[str] | Everything

#: The audience of every reader: what a record has unless its namespace is managed.
PUBLIC = "public"
#: What every account has where namespaces are managed. No record has it: it tells whose names a reader knows.
INTERNAL = "internal"
#: What an anonymous reader has.
PUBLIC_ONLY: frozenset[str] = frozenset({PUBLIC})


#: The audience of what concerns records of several audiences of which none includes the others: no reader's set holds
#: it, so only those find it who may read everything.
SEVERAL = "several"

#: How the audiences of a namespace's records end, the widest first.
_ENDS = ("", ":internal", ":team")


def includes(wider: str, narrower: str) -> bool:
    """Whether every reader of the narrower audience may read the wider one as well."""
    same = _namespace(wider) == _namespace(narrower)
    return wider == PUBLIC or (same and _width(wider) <= _width(narrower))


def widest(audiences: Iterable[str]) -> str | None:
    """The audience of what concerns records of all of these: the one that includes all others, or SEVERAL. None of
    none."""
    found = set(audiences)
    if not found:
        return None
    return next((one for one in found if all(includes(one, other) for other in found)), SEVERAL)


def _namespace(audience: str) -> str:
    return audience.removesuffix(_ENDS[_width(audience)])


def _width(audience: str) -> int:
    return max(place for place, end in enumerate(_ENDS) if audience.endswith(end))


def may_read(audience: str | None, audiences: Audiences) -> bool:
    """Whether a reader of these audiences may read a record of this one. A record without a usable audience has
    None, and no set of names holds it."""
    return isinstance(audiences, Everything) or audience in audiences
