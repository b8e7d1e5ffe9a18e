"""Every action, in one table: JSON routes, commands, tools and the reference are made from it."""

from typing import Any

from vskill_platform.actions.action import Action
from vskill_platform.actions.operation import audit, content, dead_letters, jobs, queue, system
from vskill_platform.actions.people import (
    access,
    account,
    accounts,
    credentials,
    namespace_policy,
    namespaces,
    owners,
    publishers,
    teams,
    tokens,
)
from vskill_platform.actions.recall import blocklist, blocklist_reads, revocations, takedowns
from vskill_platform.actions.review import appeals, bulk, reports, review, review_queue
from vskill_platform.actions.skills import (
    catalogue,
    collections,
    follows,
    installs,
    push_hooks,
    repositories,
    skill_names,
    upstream_entries,
    upstreams,
    versions,
)
from vskill_platform.actions.submissions import bundles, intake, submission_lists, submissions
from vskill_platform.actions.telling import notifications, webhooks
from vskill_platform.actions.verdicts import (
    external_scans,
    judges,
    memory,
    policy,
    policy_trials,
    rule_figures,
    skill_security,
    suppressions,
)

#: In the order in which the API lists them; each declares its actions by constants of its own.
_MODULES = (
    submissions,
    submission_lists,
    appeals,
    intake,
    bundles,
    owners,
    publishers,
    namespaces,
    namespace_policy,
    credentials,
    teams,
    access,
    catalogue,
    skill_names,
    skill_security,
    external_scans,
    versions,
    installs,
    repositories,
    follows,
    push_hooks,
    upstreams,
    upstream_entries,
    review,
    review_queue,
    policy,
    judges,
    policy_trials,
    memory,
    rule_figures,
    bulk,
    suppressions,
    takedowns,
    reports,
    blocklist,
    blocklist_reads,
    revocations,
    account,
    notifications,
    accounts,
    tokens,
    audit,
    system,
    webhooks,
    collections,
    queue,
    dead_letters,
    content,
    jobs,
)
ACTIONS: tuple[Action[Any, Any], ...] = tuple(
    {
        one.name: one
        for module in _MODULES
        for one in vars(module).values()
        # Some know an action of another one, which is the same by its name.
        if isinstance(one, Action)
    }.values()
)
