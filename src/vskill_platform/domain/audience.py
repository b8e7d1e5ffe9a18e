"""Who a published skill is for. A reader has a set of audiences, and a read finds the skills of those and no others."""

from typing import TypeAlias

#: Names of audiences that one reader has.
Audiences: TypeAlias = frozenset[str]

#: The audience of every reader, and today of every published skill.
PUBLIC = "public"
#: What an anonymous reader has.
PUBLIC_ONLY: Audiences = frozenset({PUBLIC})
