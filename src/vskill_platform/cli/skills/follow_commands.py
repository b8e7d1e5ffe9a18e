"""The commands about followed repositories. A repository is named by its address."""

from typing import Any

from vskill_platform.actions.skills import follows, push_hooks
from vskill_platform.cli.action_commands import command_for, details, each, known, table

_BY_ADDRESS: dict[str, Any] = {"arguments": ("repo_url",), "metavars": {"repo_url": "URL"}}


_CHECKED = ("last check (UTC)", known("checked_at", "not yet"))
_FOLLOW = (
    details(
        "{repo_url}",
        ("branch", known("branch", "the default branch")),
        ("folders", known("folders", "all")),
        ("followed", "{created_at} by {by}"),
        _CHECKED,
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
    ("branch", known("branch", "default")),
    ("folders", known("folders", "all")),
    _CHECKED,
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
