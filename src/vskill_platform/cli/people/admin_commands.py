"""The commands of `admin`. There is no default password: one is asked for, or generated and shown once."""

from typing import Any

import click

from vskill_client.destination import Caller
from vskill_client.output import print_table
from vskill_core.plural import counted
from vskill_platform.actions.people.accounts import (
    CHANGE_ROLE,
    CREATE_ACCOUNT,
    DISABLE_ACCOUNT,
    ENABLE_ACCOUNT,
    LIST_ACCOUNTS,
    RESET_PASSWORD,
    SIGN_OUT_ACCOUNT,
    AccountPage,
    AccountPassword,
    ManagedAccount,
)
from vskill_platform.cli.action_commands import command_for
from vskill_platform.cli.output import show_text_time

#: What the audit says of an operator who gives no reason.
OPERATORS_REASON = "by an operator"


async def complete_reason(caller: Caller, given: dict[str, Any]) -> dict[str, Any]:
    """The operator of this machine may leave the reason out; elsewhere one is needed."""
    default = "" if caller.registry else OPERATORS_REASON
    return {**given, "reason": given["reason"] or default}


async def complete_account(caller: Caller, given: dict[str, Any]) -> dict[str, Any]:
    return await complete_reason(caller, {**given, "role": given["role"] or "admin"})


def ask_password(ctx: click.Context, _param: click.Parameter, generate: bool) -> str | None:  # noqa: FBT001 - click's form
    """Ask for the password, twice, unless one is to be generated."""
    if generate or ctx.resilient_parsing:
        return None
    asked: str = click.prompt("Password", hide_input=True, confirmation_prompt="The same again")
    return asked


def show_accounts(found: AccountPage) -> None:
    rows = [
        (
            one.name,
            one.role.value,
            "locked out" if one.disabled else "",
            one.github_login or "",
            show_text_time(one.created_at),
        )
        for one in found.items
    ]
    print_table(counted(len(rows), "account"), ("name", "role", "", "GitHub", "since (UTC)"), rows)
    if found.after is not None:
        click.echo(f"More: --after {found.after}")
    if found.skipped:
        click.echo(f"{counted(found.skipped, 'record')} could not be read; the log names them.", err=True)


def show_created(made: AccountPassword) -> None:
    click.echo(f"The account {made.account.name} is created, as {made.account.role.value}.")
    _show_password(made)


def show_reset(changed: AccountPassword) -> None:
    click.echo(f"{changed.account.name} has a new password; its sessions and tokens have ended.")
    _show_password(changed)


def _show_password(made: AccountPassword) -> None:
    if made.password is not None:
        click.echo(f"Its password, shown only once: {made.password}")


def show_role(changed: ManagedAccount) -> None:
    click.echo(f"{changed.name} is now {changed.role.value}.")


def show_disabled(changed: ManagedAccount) -> None:
    click.echo(f"{changed.name} is locked out; its tokens are revoked.")


def show_enabled(changed: ManagedAccount) -> None:
    click.echo(f"{changed.name} may sign in again; it needs new tokens.")


def show_signed_out(changed: ManagedAccount) -> None:
    click.echo(f"{changed.name} is signed out everywhere; its tokens are revoked.")


_REASON: dict[str, Any] = {"fill": complete_reason, "optional": ("reason",)}
_GENERATE = click.Option(
    ["--generate", "password"],
    is_flag=True,
    callback=ask_password,
    help="Generate a password and show it once.",
)

COMMANDS = (
    command_for(LIST_ACCOUNTS, show_accounts),
    command_for(
        CREATE_ACCOUNT,
        show_created,
        arguments=("name",),
        fill=complete_account,
        optional=("role", "reason"),
        about="The password is asked for, or generated with --generate. Without --role it is an admin.",
        options={"password": _GENERATE},
    ),
    command_for(CHANGE_ROLE, show_role, arguments=("role",), **_REASON),
    command_for(DISABLE_ACCOUNT, show_disabled, **_REASON),
    command_for(ENABLE_ACCOUNT, show_enabled, **_REASON),
    command_for(
        RESET_PASSWORD,
        show_reset,
        about="The password is asked for, or generated with --generate.",
        **_REASON,
        options={"password": _GENERATE},
    ),
    command_for(SIGN_OUT_ACCOUNT, show_signed_out, **_REASON),
)
