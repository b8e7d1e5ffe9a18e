"""What a rule of the policy does, and that one matched, as data for the decision."""

import enum

import msgspec


class RuleEffect(enum.StrEnum):
    """What a rule of the policy does with a skill that it matches, the strictest first."""

    #: rejects it; its author can appeal
    REFUSE = "refuse"
    #: sends it to a reviewer
    REVIEW = "review"
    #: is only shown
    NOTE = "note"


class MatchedRule(msgspec.Struct, frozen=True):
    """A rule of the policy that matched a skill."""

    name: str
    then: RuleEffect
    #: a sentence for the author and the reviewer
    reason: str
    #: it could not be evaluated, so it asks for a reviewer
    failed: bool = False
