"""The commands of `account`. Passwords are asked for: a command line stands in the history of its shell."""

import click

from vskill_platform.actions.people import account, tokens
from vskill_platform.cli.action_commands import CommandQuestion, command_for, table
from vskill_platform.cli.people.token_commands import CREATED

_OLD = click.Option(["--old"], prompt="Current password", hide_input=True, hidden=True)
_NEW = click.Option(
    ["--password"],
    prompt="New password",
    hide_input=True,
    confirmation_prompt="Repeat the new password",
    hidden=True,
)
_TOKENS = table(
    "{#tokens:token}",
    "tokens",
    *("id", "name", "scopes", "namespace", ("expires (UTC)", "expires_at"), ("last used", "last_used_at")),
)
_IDENTITIES = table(
    "{#identities:identity/identities}",
    "identities",
    *("id", "issuer", "login", ("since (UTC)", "linked_at"), ("last (UTC)", "verified_at")),
)

COMMANDS = (
    command_for(account.LIST_OWN_IDENTITIES, _IDENTITIES),
    command_for(account.UNLINK_OWN_IDENTITY, "It is unlinked; the sessions that began there have ended."),
    command_for(tokens.LIST_OWN_TOKENS, _TOKENS),
    command_for(tokens.CREATE_OWN_TOKEN, CREATED),
    command_for(tokens.REVOKE_OWN_TOKEN, "The token {id} is revoked."),
    command_for(
        account.CHANGE_PASSWORD,
        "The password is changed; sessions and tokens have ended.",
        options={"old": _OLD, "password": _NEW},
    ),
    command_for(
        account.SIGN_OUT_EVERYWHERE,
        "Every session has ended, and every token is revoked.",
        confirm=CommandQuestion("End every session and revoke every token of your account?"),
    ),
)
