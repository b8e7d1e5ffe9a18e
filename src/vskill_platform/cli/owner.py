"""`owner`: prove that an account controls a repository, and see who does."""

import click

from vskill_platform.cli.errors import PlatformGroup
from vskill_platform.cli.output import json_option, print_json, print_table, show_time
from vskill_platform.cli.process import run_in_env

account_option = click.option("--account", default="local", show_default=True, help="The account that acts.")


@click.group(cls=PlatformGroup)
def owner() -> None:
    """Prove control of a repository: an owner may yank, delete and transfer."""


@owner.command("claim")
@click.argument("url")
@account_option
@json_option
def claim(*, url: str, account: str, as_json: bool) -> None:
    """Get a token to put into the repository at URL; it is shown once and good for seven days."""
    from vskill_platform.domain.identity import normalise
    from vskill_platform.store.owners import start_proof

    started = run_in_env(lambda: start_proof(account, normalise(url)))
    if as_json:
        print_json(started)
        return
    click.echo(f"1. Commit a file {started.path} to the default branch of {started.url} with this line:")
    click.echo(f"   {started.token}")
    click.echo(f"2. Before {show_time(started.expires_at)}, run: vskill-platform owner check {url}")
    click.echo("The token is of no use to anybody else, so it may stand there in public.")


@owner.command("check")
@click.argument("url")
@account_option
@json_option
def check(*, url: str, account: str, as_json: bool) -> None:
    """Look for the token in the repository at URL; exit code 1 if it is not there."""
    from vskill_platform.domain.identity import normalise
    from vskill_platform.store.owners import check_proof

    ownership = run_in_env(lambda: check_proof(account, normalise(url)))
    if as_json:
        print_json(ownership)
        return
    click.echo(f"{account} is an owner of {ownership.url}.")


@owner.command("list")
@click.option("--account", help="Only what this account owns.")
@json_option
def list_all(*, account: str | None, as_json: bool) -> None:
    """List repositories whose control was proved."""
    from vskill_platform.store.owners import list_owners

    page = run_in_env(lambda: list_owners(account))
    if as_json:
        print_json(list(page.items))
        return
    rows = [(one.url, o.account, o.how, show_time(o.since)) for one in page.items for o in one.owners]
    print_table(
        f"{len(page.items)} repositories with owners", ("repository", "account", "how", "since (UTC)"), rows
    )
    if page.skipped:
        click.echo(f"{page.skipped} records could not be read; the log names them.", err=True)


@owner.command("transfer")
@click.argument("url")
@click.argument("to")
@account_option
@click.option("--reason", required=True, help="Why; kept in the audit.")
def hand_over(*, url: str, to: str, account: str, reason: str) -> None:
    """Hand an account's part in the repository at URL over to the account TO."""
    from vskill_platform.domain.identity import normalise
    from vskill_platform.store.owners import transfer

    ownership = run_in_env(lambda: transfer(normalise(url), account=account, to=to, reason=reason))
    owners = ", ".join(one.account for one in ownership.owners)
    click.echo(f"{ownership.url} now belongs to {owners}.")
