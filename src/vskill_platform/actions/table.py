"""Every action, in one table: JSON routes, commands, tools and the reference are made from it."""

from typing import Any

from vskill_platform.actions import (
    account,
    appeals,
    blocklist,
    bulk,
    collections,
    findings,
    intake,
    owners,
    reports,
    review,
    submissions,
    suppressions,
    takedowns,
    versions,
    webhooks,
)
from vskill_platform.actions.action import Action

ACTIONS: tuple[Action[Any, Any], ...] = (
    *submissions.ACTIONS,
    *appeals.ACTIONS,
    *intake.ACTIONS,
    *findings.ACTIONS,
    *owners.ACTIONS,
    *versions.ACTIONS,
    *review.ACTIONS,
    *bulk.ACTIONS,
    *suppressions.ACTIONS,
    *takedowns.ACTIONS,
    *reports.ACTIONS,
    *blocklist.ACTIONS,
    *account.ACTIONS,
    *webhooks.ACTIONS,
    *collections.ACTIONS,
)
