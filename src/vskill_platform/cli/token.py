"""`token`: API tokens, from the machine that the registry runs on. A token is shown once, when it is made."""

import click

from vskill_platform.cli.errors import PlatformGroup
from vskill_platform.cli.output import json_option, print_json, print_table, show_time
from vskill_platform.cli.process import OPERATOR, run_in_env

#: The names of `domain.token.SCOPES`, here so that `--help` loads nothing.
SCOPES = ("read", "submit", "own", "review", "admin")


@click.group(cls=PlatformGroup)
def token() -> None:
    """Make and revoke API tokens."""


@token.command("create")
@click.argument("account")
@click.option("--name", required=True, help="What it is for.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(SCOPES),
    default=("read", "submit"),
    show_default=True,
    help="What it may do; repeatable.",
)
@click.option("--days", type=click.IntRange(1, 366), default=90, show_default=True, help="How long it lives.")
@json_option
def create(*, account: str, name: str, scopes: tuple[str, ...], days: int, as_json: bool) -> None:
    """Make a token for ACCOUNT; it is shown once."""
    from vskill_platform.store.tokens import create_token

    made = run_in_env(lambda: create_token(account, name, scopes, by=OPERATOR, days=days))
    if as_json:
        print_json({"id": made.token.id, "token": made.secret, "expires_at": made.token.expires_at})
        return
    click.echo(f"The token, shown only now: {made.secret}")
    click.echo(f"It may {', '.join(made.token.scopes)}, and expires {show_time(made.token.expires_at)}.")


@token.command("list")
@click.option("--account", help="Only those of this account.")
@json_option
def list_all(*, account: str | None, as_json: bool) -> None:
    """List tokens, the latest first; the secrets are not kept."""
    from vskill_platform.store.tokens import list_all_tokens, list_tokens

    found = run_in_env(lambda: list_all_tokens() if account is None else list_tokens(account))
    if as_json:
        print_json(list(found))
        return
    rows = [
        (
            one.id,
            one.account,
            one.name,
            ", ".join(one.scopes),
            show_time(one.expires_at),
            show_time(one.last_used_at),
        )
        for one in found
    ]
    columns = ("id", "account", "name", "scopes", "expires (UTC)", "last used")
    print_table(f"{len(found)} tokens", columns, rows)


@token.command("revoke")
@click.argument("account")
@click.argument("token_id")
@click.option("--reason", default="by an operator", show_default=True, help="Why; kept in the audit.")
def revoke(*, account: str, token_id: str, reason: str) -> None:
    """Make a token of ACCOUNT worthless."""
    from vskill_platform.store.tokens import revoke_token

    gone = run_in_env(lambda: revoke_token(account, token_id, by=OPERATOR, reason=reason))
    click.echo(f"The token {gone.name!r} of {account} is revoked.")
