"""The commands of `account`. Passwords are asked for: a command line stands in the history of its shell."""

import click

from vskill_client.output import print_table
from vskill_core.plural import counted
from vskill_platform.actions.people.account import CHANGE_PASSWORD, SIGN_OUT_EVERYWHERE
from vskill_platform.actions.people.tokens import (
    CREATE_OWN_TOKEN,
    LIST_OWN_TOKENS,
    REVOKE_OWN_TOKEN,
    TokenList,
)
from vskill_platform.cli.action_commands import command_for
from vskill_platform.cli.output import show_text_time
from vskill_platform.cli.people.token_commands import show_created_token


def show_own_tokens(found: TokenList) -> None:
    rows = [
        (
            one.id,
            one.name,
            ", ".join(one.scopes),
            one.namespace or "",
            show_text_time(one.expires_at),
            show_text_time(one.last_used_at),
        )
        for one in found.tokens
    ]
    columns = ("id", "name", "scopes", "namespace", "expires (UTC)", "last used")
    print_table(counted(len(rows), "token"), columns, rows)


_OLD = click.Option(["--old"], prompt="Current password", hide_input=True, hidden=True)
_NEW = click.Option(
    ["--password"],
    prompt="New password",
    hide_input=True,
    confirmation_prompt="Repeat the new password",
    hidden=True,
)

COMMANDS = (
    command_for(LIST_OWN_TOKENS, show_own_tokens),
    command_for(CREATE_OWN_TOKEN, show_created_token),
    command_for(REVOKE_OWN_TOKEN, lambda gone: click.echo(f"The token {gone.id} is revoked.")),
    command_for(
        CHANGE_PASSWORD,
        lambda _: click.echo("The password is changed; sessions and tokens have ended."),
        options={"old": _OLD, "password": _NEW},
    ),
    command_for(
        SIGN_OUT_EVERYWHERE,
        lambda _: click.echo("Every session has ended, and every token is revoked."),
        confirm="End every session and revoke every token of your account?",
    ),
)
