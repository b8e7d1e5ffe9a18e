"""Who may read a record. Each skill and submission has one audience, and a reader has a set of them: a question to the
store finds the records whose audience is in the set, and no others.

Who belongs to an audience is not in the record but in its namespace, so that a change of visibility is one write.
"""

import enum
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
#: What an anonymous reader has.
PUBLIC_ONLY: frozenset[str] = frozenset({PUBLIC})


def may_read(audience: str | None, audiences: Audiences) -> bool:
    """Whether a reader of these audiences may read a record of this one. A record without a usable audience has
    None, and no set of names holds it."""
    return isinstance(audiences, Everything) or audience in audiences
