"""The areas of the admin pages, each offered to those who may perform the action that its page is for."""

from collections.abc import Iterable
from typing import Any

import msgspec

from vskill_platform.actions.action import Action
from vskill_platform.actions.people.namespace_policy import MAKE_PUBLIC
from vskill_platform.actions.principal import Principal
from vskill_platform.web.routing import Endpoint


class SitePlace(msgspec.Struct, frozen=True):
    """Somewhere to go to."""

    address: str
    name: str
    #: What is done there, which the palette finds it by.
    purpose: str


class AdminArea(SitePlace, frozen=True):
    """One area."""

    #: The action that it is for, where that is not the one of its page.
    action: Action[Any, Any] | None = None


#: Grouped as they are needed: every day, about what is published, about work, about people, about the installation.
AREAS: dict[str, tuple[AdminArea, ...]] = {
    "Every day": (
        AdminArea("/admin", "Overview", "is everything well, what waits"),
        AdminArea("/admin/review", "Review", "approve or reject what waits for a person"),
        AdminArea("/admin/reports", "Reports", "decide about reports of readers"),
    ),
    "Skills": (
        AdminArea("/admin/skills", "Skills", "take down, restore"),
        AdminArea(
            "/admin/upstreams", "Upstreams", "other marketplaces and registries whose skills come here"
        ),
        AdminArea("/admin/collections", "Collections", "choose skills for a marketplace"),
        AdminArea("/admin/blocklist", "Blocklist", "block and unblock"),
        AdminArea("/admin/policy", "Policy", "what is not published without a reviewer"),
        AdminArea("/admin/rules", "Rules", "how each rule did here"),
        AdminArea("/admin/suppressions", "Suppressions", "false positives"),
    ),
    "Work": (
        AdminArea("/admin/queue", "Queue", "pause, resume, requeue, dead letters"),
        AdminArea("/admin/bulk", "Bulk", "decide about many at once"),
        AdminArea("/admin/jobs", "Jobs", "run a scheduled job now"),
        AdminArea("/admin/content", "Content", "damaged content, scrub and repair"),
    ),
    "People": (
        AdminArea("/admin/accounts", "Accounts", "add a user, create an account, roles, passwords"),
        AdminArea("/admin/teams", "Teams", "members and groups"),
        AdminArea(
            "/namespaces", "Namespaces", "members, visibility and quotas of every namespace", MAKE_PUBLIC
        ),
        AdminArea("/admin/tokens", "Tokens", "revoke a token"),
        AdminArea("/admin/access", "Access", "public or internal registry"),
    ),
    "Installation": (
        AdminArea("/admin/webhooks", "Webhooks", "tell other systems"),
        AdminArea("/admin/audit", "Audit", "who did what"),
        AdminArea("/admin/judges", "Judge", "a language model that reads what is submitted"),
        AdminArea("/admin/settings", "Settings", "what this process runs with"),
        AdminArea("/admin/storage", "Storage", "sizes and health of the stores"),
    ),
}


def areas_for(endpoints: Iterable[Endpoint], principal: Principal) -> dict[str, list[AdminArea]]:
    pages = {endpoint.path: endpoint.action for endpoint in endpoints if endpoint.method == "GET"}

    def is_offered(area: AdminArea) -> bool:
        action = area.action or pages.get(area.address)
        return action is not None and action.allows(principal)

    offered = {group: list(filter(is_offered, areas)) for group, areas in AREAS.items()}
    return {group: areas for group, areas in offered.items() if areas}
