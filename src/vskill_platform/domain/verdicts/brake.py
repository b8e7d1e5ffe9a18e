"""The brake of rescans: new rules take nothing down before it is known how much they would take down.

A rule that is wrong about honest skills would otherwise empty the marketplace within minutes. A few skills, or one in a
hundred, go by themselves; beyond that an admin looks at the list first.
"""

import msgspec

#: What one rule set may take down without an admin: this many skills, or one of this many that are live.
MOST_SKILLS, ONE_OF = 5, 100


class HeldTakeDown(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `rescan:{ruleset}:{canonical}:{digest}`: these rules would take this version down. It stays when
    that is done, so that the brake counts everything that one rule set took down."""

    canonical: str
    digest: str
    number: str
    reason: str
    at: int
    rule_ids: tuple[str, ...] = ()
    #: it was taken down
    done: bool = False


class Brake(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `control:rescans`: this rule set stopped before its first take-down."""

    ruleset: str
    #: how many skills it would take down, and how many are live
    skills: int
    live: int
    since: int
    #: the admin who let it go on; None: it waits for one
    continued_by: str | None = None

    @property
    def holds(self) -> bool:
        return self.continued_by is None


def needs_brake(skills: int, live: int) -> bool:
    """Whether taking down this many of the live skills needs an admin."""
    return skills > MOST_SKILLS and skills * ONE_OF > live
