"""The commands about followed repositories. A repository is named by its address."""

from typing import Any

from vskill_client.output import show_text_time
from vskill_platform.actions.skills import follows, push_hooks
from vskill_platform.cli.action_commands import command_for, details, each, table

_BY_ADDRESS: dict[str, Any] = {"arguments": ("repo_url",), "metavars": {"repo_url": "URL"}}


def _checked(one: follows.FollowView) -> str:
    return show_text_time(one.checked_at) if one.checked_at else "not yet"


_FOLLOW = (
    details(
        "{repo_url}",
        ("branch", lambda one: one.branch or "the default branch"),
        ("folders", lambda one: one.folders or "all"),
        ("followed", "{created_at} by {by}"),
        ("last check (UTC)", _checked),
        ("found", "found"),
        ("problem", "problem"),
        ("skills", "skills"),
    ),
    each("untaken", "not taken: {path}: {reason}"),
    each("gone", "gone since {gone_since}: {path}"),
)
_TABLE = table(
    "{#follows} repositories that {namespace} follows",
    "follows",
    ("repository", "repo_url"),
    ("branch", lambda one: one.branch or "default"),
    ("folders", lambda one: one.folders or "all"),
    ("last check (UTC)", _checked),
    ("found", lambda one: one.problem or one.found),
    ("skills", "skills"),
    ("not taken", lambda one: len(one.untaken)),
)

COMMANDS = (
    command_for(follows.LIST_FOLLOWS, _TABLE, arguments=("namespace",)),
    command_for(follows.SHOW_FOLLOW, *_FOLLOW, **_BY_ADDRESS),
    command_for(
        follows.FOLLOW, "{repo_url} is followed; 'follow show' says what its check finds.", **_BY_ADDRESS
    ),
    command_for(
        push_hooks.SHOW_PUSH_HOOK,
        table(
            "Pushes are taken at {address}",
            "deliveries",
            ("received (UTC)", "received_at"),
            *("forge", "outcome", "reason", "id"),
        ),
        **_BY_ADDRESS,
    ),
    command_for(
        push_hooks.MAKE_PUSH_HOOK,
        "Let the forge send pushes to {address}",
        "Its secret, shown only once: {secret}",
        **_BY_ADDRESS,
    ),
    command_for(follows.UNFOLLOW, "It is followed no longer; its skills stay.", **_BY_ADDRESS),
)
