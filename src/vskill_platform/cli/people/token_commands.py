"""The commands of `token`, and how tokens are printed."""

from typing import Any

import click

from vskill_client.output import print_table
from vskill_core.plural import counted
from vskill_platform.actions.people.tokens import (
    CREATE_TOKEN_FOR,
    LIST_ALL_TOKENS,
    REVOKE_TOKEN_OF,
    AccountToken,
    AllTokens,
    CreatedToken,
)
from vskill_platform.cli.action_commands import command_for
from vskill_platform.cli.output import show_text_time
from vskill_platform.cli.people.admin_commands import complete_reason


def show_created_token(made: CreatedToken) -> None:
    click.echo(f"The token, shown only once: {made.token}")
    until = show_text_time(made.details.expires_at)
    where = f" in the namespace {made.details.namespace}" if made.details.namespace else ""
    click.echo(f"It may {', '.join(made.details.scopes)}{where}, and expires {until}.")


def show_tokens(found: AllTokens) -> None:
    rows = [
        (
            one.details.id,
            one.account,
            one.details.name,
            ", ".join(one.details.scopes),
            one.details.namespace or "",
            show_text_time(one.details.expires_at),
            show_text_time(one.details.last_used_at),
        )
        for one in found.tokens
    ]
    columns = ("id", "account", "name", "scopes", "namespace", "expires (UTC)", "last used")
    print_table(counted(len(rows), "token"), columns, rows)


def show_revoked(gone: AccountToken) -> None:
    click.echo(f"The token {gone.details.name!r} of {gone.account} is revoked.")


_REASON: dict[str, Any] = {"fill": complete_reason, "optional": ("reason",)}

COMMANDS = (
    command_for(CREATE_TOKEN_FOR, show_created_token),
    command_for(LIST_ALL_TOKENS, show_tokens),
    command_for(REVOKE_TOKEN_OF, show_revoked, **_REASON),
)
