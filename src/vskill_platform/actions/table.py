"""Every action, in one table: JSON routes, commands, tools and the reference are made from it."""

from typing import Any

from vskill_platform.actions.action import Action
from vskill_platform.actions.operation import audit, content, dead_letters, jobs, queue, rescans, system
from vskill_platform.actions.people import (
    access,
    account,
    accounts,
    namespace_policy,
    namespaces,
    owners,
    teams,
    tokens,
)
from vskill_platform.actions.recall import blocklist, blocklist_reads, revocations, takedowns
from vskill_platform.actions.review import appeals, bulk, reports, review, review_queue
from vskill_platform.actions.skills import (
    catalogue,
    collections,
    downloads,
    locks,
    names,
    narrowing,
    repositories,
    skill_contents,
    versions,
)
from vskill_platform.actions.submissions import findings, hand_ins, intake, submission_lists, submissions
from vskill_platform.actions.telling import notifications, webhooks
from vskill_platform.actions.verdicts import (
    comparison,
    external_scans,
    judges,
    memory,
    policy,
    policy_trials,
    rule_figures,
    skill_security,
    suppressions,
)

ACTIONS: tuple[Action[Any, Any], ...] = (
    *submissions.ACTIONS,
    *submission_lists.ACTIONS,
    *appeals.ACTIONS,
    *intake.ACTIONS,
    *hand_ins.ACTIONS,
    *findings.ACTIONS,
    *owners.ACTIONS,
    *names.ACTIONS,
    *namespaces.ACTIONS,
    *namespace_policy.ACTIONS,
    *narrowing.ACTIONS,
    *teams.ACTIONS,
    *access.ACTIONS,
    *catalogue.ACTIONS,
    *skill_contents.ACTIONS,
    *skill_security.ACTIONS,
    *comparison.ACTIONS,
    *external_scans.ACTIONS,
    *versions.ACTIONS,
    *downloads.ACTIONS,
    *locks.ACTIONS,
    *repositories.ACTIONS,
    *review.ACTIONS,
    *review_queue.ACTIONS,
    *policy.ACTIONS,
    *judges.ACTIONS,
    *policy_trials.ACTIONS,
    *memory.ACTIONS,
    *rule_figures.ACTIONS,
    *bulk.ACTIONS,
    *suppressions.ACTIONS,
    *takedowns.ACTIONS,
    *reports.ACTIONS,
    *blocklist.ACTIONS,
    *blocklist_reads.ACTIONS,
    *revocations.ACTIONS,
    *account.ACTIONS,
    *notifications.ACTIONS,
    *accounts.ACTIONS,
    *tokens.ACTIONS,
    *audit.ACTIONS,
    *system.ACTIONS,
    *webhooks.ACTIONS,
    *collections.ACTIONS,
    *queue.ACTIONS,
    *dead_letters.ACTIONS,
    *content.ACTIONS,
    *jobs.ACTIONS,
    *rescans.ACTIONS,
)
