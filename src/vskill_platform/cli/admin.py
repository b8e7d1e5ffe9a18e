"""`admin`: accounts, from the machine that the registry runs on. There is no default password: one is asked for, or
made and shown once."""

from typing import TYPE_CHECKING

import click

from vskill_platform.cli.errors import PlatformGroup
from vskill_platform.cli.output import json_option, print_json, print_table, show_time
from vskill_platform.cli.process import OPERATOR, run_in_env

if TYPE_CHECKING:
    from vskill_platform.store.accounts import User

#: The names of `store.accounts.Role`, here so that `--help` loads nothing.
ROLES = ("author", "reviewer", "admin")

_reason = click.option(
    "--reason", default="by an operator", show_default=True, help="Why; kept in the audit."
)
_generate = click.option("--generate", is_flag=True, help="Make a password and show it once.")


@click.group(cls=PlatformGroup)
def admin() -> None:
    """Make and change accounts: authors, reviewers, admins."""


@admin.command("create")
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), default="admin", show_default=True)
@_generate
@_reason
@json_option
def create(*, name: str, role: str, generate: bool, reason: str, as_json: bool) -> None:
    """Make an account; the password is asked for, or made with --generate."""
    from vskill_platform.store.accounts import Role, create_user

    password = _password(generate=generate)
    user = run_in_env(lambda: create_user(name, Role(role), by=OPERATOR, reason=reason, password=password))
    _show(
        user.name,
        f"The account {user.name} is made, as {user.role.value}.",
        password,
        generate=generate,
        as_json=as_json,
    )


@admin.command("list")
@json_option
def list_accounts(*, as_json: bool) -> None:
    """List accounts."""
    from vskill_platform.store.accounts import list_users

    async def read() -> "list[User]":
        found: list[User] = []
        after: str | None = None
        while True:
            page = await list_users(after=after, limit=1000)
            found.extend(page.items)
            after = page.after
            if after is None:
                return found

    users = run_in_env(read)
    if as_json:
        print_json([_public(user) for user in users])
        return
    rows = [
        (
            user.name,
            user.role.value,
            "locked out" if user.disabled else "",
            user.github.login if user.github else "",
            show_time(user.created_at),
        )
        for user in users
    ]
    print_table(f"{len(users)} accounts", ("name", "role", "", "GitHub", "since (UTC)"), rows)


@admin.command("disable")
@click.argument("name")
@_reason
def disable(*, name: str, reason: str) -> None:
    """Lock an account out; its sessions and tokens end."""
    from vskill_platform.store.accounts import set_disabled

    run_in_env(lambda: set_disabled(name, disabled=True, by=OPERATOR, reason=reason))
    click.echo(f"{name} is locked out.")


@admin.command("enable")
@click.argument("name")
@_reason
def enable(*, name: str, reason: str) -> None:
    """Let an account in again; it needs new tokens."""
    from vskill_platform.store.accounts import set_disabled

    run_in_env(lambda: set_disabled(name, disabled=False, by=OPERATOR, reason=reason))
    click.echo(f"{name} may sign in again.")


@admin.command("password")
@click.argument("name")
@_generate
@_reason
@json_option
def password(*, name: str, generate: bool, reason: str, as_json: bool) -> None:
    """Give an account a new password; its sessions and tokens end."""
    from vskill_platform.store.accounts import set_password

    new = _password(generate=generate)
    run_in_env(lambda: set_password(name, new, by=OPERATOR, reason=reason))
    _show(name, f"{name} has a new password.", new, generate=generate, as_json=as_json)


@admin.command("role")
@click.argument("name")
@click.argument("role", type=click.Choice(ROLES))
@_reason
def role(*, name: str, role: str, reason: str) -> None:
    """Give an account another role; tokens with scopes beyond either role end."""
    from vskill_platform.store.accounts import Role, set_role

    run_in_env(lambda: set_role(name, Role(role), by=OPERATOR, reason=reason))
    click.echo(f"{name} is now {role}.")


def _password(*, generate: bool) -> str:
    from vskill_platform.store.passwords import new_password

    if generate:
        return new_password()
    asked: str = click.prompt("Password", hide_input=True, confirmation_prompt="The same again")
    return asked


def _show(name: str, text: str, password: str, *, generate: bool, as_json: bool) -> None:
    if as_json:
        print_json({"name": name, "password": password} if generate else {"name": name})
        return
    click.echo(text)
    if generate:
        click.echo(f"Its password, shown only now: {password}")


def _public(user: "User") -> dict[str, object]:
    """Without the hashes."""
    return {
        "name": user.name,
        "role": user.role.value,
        "disabled": user.disabled,
        "created_at": user.created_at,
        "github": user.github.login if user.github else None,
        "tokens": len(user.tokens),
    }
