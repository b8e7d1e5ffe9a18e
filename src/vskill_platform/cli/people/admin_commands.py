"""The commands of `admin`. There is no default password: one is asked for, or generated and shown once."""

from typing import Any

import click

from vskill_client.destination import Caller
from vskill_platform.actions.people import account, accounts
from vskill_platform.cli.action_commands import Given, command_for, table, when

#: What the audit says of an operator who gives no reason.
OPERATORS_REASON = "by an operator"


async def complete_reason(caller: Caller, given: Given) -> Given:
    """The operator of this machine may leave the reason out; elsewhere one is needed."""
    default = "" if caller.registry else OPERATORS_REASON
    return {**given, "reason": given["reason"] or default}


async def complete_account(caller: Caller, given: Given) -> Given:
    return await complete_reason(caller, {**given, "role": given["role"] or "admin"})


def ask_password(ctx: click.Context, _param: click.Parameter, generate: bool) -> str | None:  # noqa: FBT001 - click's form
    """Ask for the password, twice, unless one is to be generated."""
    if generate or ctx.resilient_parsing:
        return None
    asked: str = click.prompt("Password", hide_input=True, confirmation_prompt="The same again")
    return asked


REASON: dict[str, Any] = {"fill": complete_reason, "optional": ("reason",)}
_GENERATE = click.Option(
    ["--generate", "password"],
    is_flag=True,
    callback=ask_password,
    help="Generate a password and show it once.",
)
_PASSWORD = when("password", "Its password, shown only once: {password}")
_ACCOUNTS = table(
    "{#items:account}",
    "items",
    "name",
    "role",
    ("", lambda account: "locked out" if account.disabled else ""),
    (
        "identities",
        lambda account: ", ".join(f"{one.login} at {one.issuer} ({one.id})" for one in account.identities),
    ),
    ("since (UTC)", "created_at"),
)

COMMANDS = (
    command_for(accounts.LIST_ACCOUNTS, _ACCOUNTS),
    command_for(
        accounts.CREATE_ACCOUNT,
        "The account {account.name} is created, as {account.role}.",
        _PASSWORD,
        arguments=("name",),
        fill=complete_account,
        optional=("role", "reason"),
        about="The password is asked for, or generated with --generate. Without --role it is an admin.",
        options={"password": _GENERATE},
    ),
    command_for(accounts.CHANGE_ROLE, "{name} is now {role}.", arguments=("role",), **REASON),
    command_for(accounts.DISABLE_ACCOUNT, "{name} is locked out; its tokens are revoked.", **REASON),
    command_for(accounts.ENABLE_ACCOUNT, "{name} may sign in again; it needs new tokens.", **REASON),
    command_for(
        accounts.RESET_PASSWORD,
        "{account.name} has a new password; its sessions and tokens have ended.",
        _PASSWORD,
        about="The password is asked for, or generated with --generate.",
        options={"password": _GENERATE},
        **REASON,
    ),
    command_for(
        account.UNLINK_IDENTITY_OF,
        "The identity is unlinked from {name}.",
        arguments=("name", "identity"),
        **REASON,
    ),
    command_for(
        accounts.SIGN_OUT_ACCOUNT, "{name} is signed out everywhere; its tokens are revoked.", **REASON
    ),
)
