"""The commands about CI workflows that may submit a repository."""

from vskill_client.output import show_text_time
from vskill_platform.actions.people import publishers
from vskill_platform.cli.action_commands import command_for, table

_TABLE = table(
    "{#publishers} publishers of {repo_url}",
    lambda found: found.publishers,
    ("id", lambda one: one.id),
    ("issuer", lambda one: one.issuer),
    ("workflow", lambda one: one.workflow),
    ("branch or tag", lambda one: one.ref or "all"),
    ("environment", lambda one: one.environment or "any"),
    ("repository's number", lambda one: one.number or "not known yet"),
    ("last used (UTC)", lambda one: show_text_time(one.last_used_at) if one.last_used_at else "never"),
)

COMMANDS = (
    command_for(publishers.LIST_PUBLISHERS, _TABLE, arguments=("repo_url",)),
    command_for(publishers.ADD_PUBLISHER, _TABLE, arguments=("repo_url", "workflow")),
    command_for(publishers.REMOVE_PUBLISHER, _TABLE, arguments=("repo_url", "publisher_id")),
)
