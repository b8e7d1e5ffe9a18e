"""The areas of the admin pages, each offered to whoever may perform the action that it is for."""

from typing import Any

from vskill_platform.actions.access import SHOW_ACCESS
from vskill_platform.actions.accounts import LIST_ACCOUNTS
from vskill_platform.actions.action import Action
from vskill_platform.actions.audit import READ_AUDIT
from vskill_platform.actions.blocklist import BLOCKS
from vskill_platform.actions.bulk import BULK
from vskill_platform.actions.collections import CREATE_COLLECTION
from vskill_platform.actions.content import SHOW_CONTENT
from vskill_platform.actions.jobs import LIST_JOBS
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.queue import STATUS
from vskill_platform.actions.reports import FILED
from vskill_platform.actions.review_queue import WAITING
from vskill_platform.actions.rule_figures import RULE_FIGURES
from vskill_platform.actions.suppressions import SUPPRESSED
from vskill_platform.actions.system import SHOW_OVERVIEW, SHOW_SETTINGS, SHOW_STORAGE
from vskill_platform.actions.takedowns import TAKE_DOWN
from vskill_platform.actions.teams import CREATE_TEAM
from vskill_platform.actions.tokens import LIST_ALL_TOKENS
from vskill_platform.actions.webhooks import LIST_WEBHOOKS

AREAS: tuple[tuple[str, str, Action[Any, Any]], ...] = (
    ("/admin", "Overview", SHOW_OVERVIEW),
    ("/admin/review", "Review", WAITING),
    ("/admin/reports", "Reports", FILED),
    ("/admin/blocklist", "Blocklist", BLOCKS),
    ("/admin/rules", "Rules", RULE_FIGURES),
    ("/admin/suppressions", "Suppressions", SUPPRESSED),
    ("/admin/skills", "Skills", TAKE_DOWN),
    ("/admin/collections", "Collections", CREATE_COLLECTION),
    ("/admin/queue", "Queue", STATUS),
    ("/admin/bulk", "Bulk", BULK),
    ("/admin/jobs", "Jobs", LIST_JOBS),
    ("/admin/content", "Content", SHOW_CONTENT),
    ("/admin/accounts", "Accounts", LIST_ACCOUNTS),
    ("/admin/tokens", "Tokens", LIST_ALL_TOKENS),
    ("/admin/teams", "Teams", CREATE_TEAM),
    ("/admin/access", "Access", SHOW_ACCESS),
    ("/admin/webhooks", "Webhooks", LIST_WEBHOOKS),
    ("/admin/audit", "Audit", READ_AUDIT),
    ("/admin/settings", "Settings", SHOW_SETTINGS),
    ("/admin/storage", "Storage", SHOW_STORAGE),
)


def areas_for(principal: Principal) -> list[tuple[str, str]]:
    """The address and the name of each area that is offered."""
    return [(link, text) for link, text, action in AREAS if action.allows(principal)]
