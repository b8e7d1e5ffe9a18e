"""The areas of the admin pages, each offered to whoever may perform the action that it is for."""

from typing import Any

import msgspec

from vskill_platform.actions.action import Action
from vskill_platform.actions.operation.audit import READ_AUDIT
from vskill_platform.actions.operation.content import SHOW_CONTENT
from vskill_platform.actions.operation.jobs import LIST_JOBS
from vskill_platform.actions.operation.queue import STATUS
from vskill_platform.actions.operation.system import SHOW_OVERVIEW, SHOW_SETTINGS, SHOW_STORAGE
from vskill_platform.actions.people.access import SHOW_ACCESS
from vskill_platform.actions.people.accounts import LIST_ACCOUNTS
from vskill_platform.actions.people.namespaces import MAKE_PUBLIC
from vskill_platform.actions.people.teams import CREATE_TEAM
from vskill_platform.actions.people.tokens import LIST_ALL_TOKENS
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.recall.blocklist import BLOCKS
from vskill_platform.actions.recall.takedowns import TAKE_DOWN
from vskill_platform.actions.review.bulk import BULK
from vskill_platform.actions.review.reports import FILED
from vskill_platform.actions.review.review_queue import WAITING
from vskill_platform.actions.skills.collections import CREATE_COLLECTION
from vskill_platform.actions.telling.webhooks import LIST_WEBHOOKS
from vskill_platform.actions.verdicts.rule_figures import RULE_FIGURES
from vskill_platform.actions.verdicts.suppressions import SUPPRESSED


class AdminArea(msgspec.Struct, frozen=True):
    """One area."""

    address: str
    name: str
    #: The action that it is for: whoever may perform it is offered the area.
    action: Action[Any, Any]
    #: What is done there, which the palette finds it by.
    purpose: str


#: Grouped as they are needed: every day, about what is published, about work, about people, about the installation.
AREAS: dict[str, tuple[AdminArea, ...]] = {
    "Every day": (
        AdminArea("/admin", "Overview", SHOW_OVERVIEW, "is everything well, what waits"),
        AdminArea("/admin/review", "Review", WAITING, "approve or reject what waits for a person"),
        AdminArea("/admin/reports", "Reports", FILED, "decide about reports of readers"),
    ),
    "Skills": (
        AdminArea("/admin/skills", "Skills", TAKE_DOWN, "take down, restore"),
        AdminArea("/admin/collections", "Collections", CREATE_COLLECTION, "choose skills for a marketplace"),
        AdminArea("/admin/blocklist", "Blocklist", BLOCKS, "block and unblock"),
        AdminArea("/admin/rules", "Rules", RULE_FIGURES, "how each rule did here"),
        AdminArea("/admin/suppressions", "Suppressions", SUPPRESSED, "false positives"),
    ),
    "Work": (
        AdminArea("/admin/queue", "Queue", STATUS, "pause, resume, requeue, dead letters"),
        AdminArea("/admin/bulk", "Bulk", BULK, "decide about many at once"),
        AdminArea("/admin/jobs", "Jobs", LIST_JOBS, "run a scheduled job now"),
        AdminArea("/admin/content", "Content", SHOW_CONTENT, "damaged content, scrub and repair"),
    ),
    "People": (
        AdminArea(
            "/admin/accounts", "Accounts", LIST_ACCOUNTS, "add a user, create an account, roles, passwords"
        ),
        AdminArea("/admin/teams", "Teams", CREATE_TEAM, "members and groups"),
        AdminArea(
            "/namespaces", "Namespaces", MAKE_PUBLIC, "members, visibility and quotas of every namespace"
        ),
        AdminArea("/admin/tokens", "Tokens", LIST_ALL_TOKENS, "revoke a token"),
        AdminArea("/admin/access", "Access", SHOW_ACCESS, "public or internal registry"),
    ),
    "Installation": (
        AdminArea("/admin/webhooks", "Webhooks", LIST_WEBHOOKS, "tell other systems"),
        AdminArea("/admin/audit", "Audit", READ_AUDIT, "who did what"),
        AdminArea("/admin/settings", "Settings", SHOW_SETTINGS, "what this process runs with"),
        AdminArea("/admin/storage", "Storage", SHOW_STORAGE, "sizes and health of the stores"),
    ),
}


def areas_for(principal: Principal) -> dict[str, list[AdminArea]]:
    """The areas that are offered, by group."""
    offered = {
        group: [one for one in areas if one.action.allows(principal)] for group, areas in AREAS.items()
    }
    return {group: areas for group, areas in offered.items() if areas}
