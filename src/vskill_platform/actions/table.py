"""Every action, in one table: JSON routes, commands, tools and the reference are made from it."""

from typing import Any

from vskill_platform.actions import (
    account,
    appeals,
    blocklist,
    blocklist_reads,
    bulk,
    catalogue,
    collections,
    downloads,
    external_scans,
    findings,
    intake,
    owners,
    reports,
    review,
    skill_contents,
    skill_security,
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
    *catalogue.ACTIONS,
    *skill_contents.ACTIONS,
    *skill_security.ACTIONS,
    *external_scans.ACTIONS,
    *versions.ACTIONS,
    *downloads.ACTIONS,
    *review.ACTIONS,
    *bulk.ACTIONS,
    *suppressions.ACTIONS,
    *takedowns.ACTIONS,
    *reports.ACTIONS,
    *blocklist.ACTIONS,
    *blocklist_reads.ACTIONS,
    *account.ACTIONS,
    *webhooks.ACTIONS,
    *collections.ACTIONS,
)
