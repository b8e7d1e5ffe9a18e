"""Capability cards as clients see them: of one version, and what two versions differ in. Pure: from stored reports to
what is encoded. A report from before there were cards has none, which is not an empty one."""

import msgspec

from vskill_client.wire.base import Wire
from vskill_client.wire.findings import CapabilityView
from vskill_core.capability import SkillCapability, new_capabilities
from vskill_core.findings import StaticReport


class CapabilityChanges(Wire, frozen=True):
    """What the card of one version has and the other's has not."""

    added: tuple[CapabilityView, ...]
    removed: tuple[CapabilityView, ...]
    #: both cards were made by the same rules; otherwise a difference may come from the rules
    same_rules: bool


def card_view(report: StaticReport | None) -> tuple[CapabilityView, ...] | None:
    """None where nothing is known."""
    if report is None or report.capabilities is None:
        return None
    return tuple(CapabilityView.of(one) for one in report.capabilities)


class CardDifference(msgspec.Struct, frozen=True):
    """Two cards, compared."""

    added: tuple[SkillCapability, ...]
    removed: tuple[SkillCapability, ...]
    same_rules: bool


def compare_cards(before: StaticReport | None, after: StaticReport | None) -> CardDifference | None:
    """None where a card is missing."""
    if before is None or after is None or before.capabilities is None or after.capabilities is None:
        return None
    return CardDifference(
        new_capabilities(before.capabilities, after.capabilities),
        new_capabilities(after.capabilities, before.capabilities),
        before.ruleset == after.ruleset,
    )


def changes_view(found: CardDifference | None) -> CapabilityChanges | None:
    return None if found is None else CapabilityChanges.of(found)
