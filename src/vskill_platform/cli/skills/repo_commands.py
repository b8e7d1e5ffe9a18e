"""The commands about the repositories of published skills. A repository is named by its address."""

from typing import Any

from vskill_client.output import UNKNOWN
from vskill_platform.actions.skills import repositories
from vskill_platform.cli.action_commands import command_for, details, known, table

_REPOSITORIES = table(
    "{#repositories} repositories",
    "repositories",
    ("repository", "url"),
    "status",
    ("checked (UTC)", "checked_at"),
    ("licence", known("facts.licence")),
    ("why", "detail"),
)
_ARCHIVED = {None: "unknown: git does not tell", False: "false", True: "true"}
_HEALTH = details(
    "{url}",
    ("status", "{status} since {status_since}"),
    ("why", "detail"),
    ("checked", "checked_at"),
    ("last reached", "reached_at"),
    ("gone since", "gone_since"),
    ("moved to", "facts.moved_to"),
    ("head", lambda one: f"{one.facts.commit or UNKNOWN} (branch {one.facts.branch or 'unknown'})"),
    ("last commit", "facts.committed_at"),
    ("licence", "facts.licence"),
    ("archived", lambda health: _ARCHIVED[health.facts.archived]),
)
_BY_ADDRESS: dict[str, Any] = {"arguments": ("repo_url",), "metavars": {"repo_url": "URL"}}

COMMANDS = (
    command_for(repositories.LIST_REPOSITORIES, _REPOSITORIES),
    command_for(repositories.SHOW_REPOSITORY, _HEALTH, **_BY_ADDRESS),
    command_for(
        repositories.CHECK_REPOSITORY,
        "Asked for check {run} of {repo}; 'repo health' shows what it finds.",
        **_BY_ADDRESS,
    ),
)
