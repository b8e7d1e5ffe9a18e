"""`login` and `logout`: tokens of registries elsewhere, and where commands act that name none."""

import sys

import click

from vskill_client.destination import (
    Caller,
    Destination,
    RemoteDestination,
    current_destination,
    run_with_caller,
)
from vskill_client.output import json_option, print_json
from vskill_client.registries import check_address, read_tokens, remote_variables, write_tokens
from vskill_client.wire.base import NoParameters
from vskill_client.wire.login import ASK_FOR_CODE, ASK_FOR_TOKEN, AskForCode, AskForToken
from vskill_client.wire.skills import WHO_AM_I
from vskill_core.errors import InvalidInput, LoginPending


@click.command()
@click.argument("registry", metavar="URL")
@click.option("--token", "with_token", is_flag=True, help="Ask for a token instead of showing a code.")
def login(*, registry: str, with_token: bool) -> None:
    """Sign in to the registry at URL, and act there from now on.

    Commands with --registry URL act as the token's account. Where this machine has no registry of its own, commands
    without --registry act on the one that you signed in to last.

    It shows a code. Type it on a page of the registry, in any browser, and choose there what this machine may do.
    Where standard input is no terminal, a token is read from it instead: make one on your account page.
    """
    address = check_address(registry)
    destination = current_destination()
    is_terminal = sys.stdin.isatty()
    token = _ask_for_token(address, destination) if is_terminal and not with_token else _read_token(address)
    there = RemoteDestination(address, token, destination)
    account = there.run(lambda caller: caller.call(WHO_AM_I, NoParameters()))
    folder = remote_variables().folder
    others = {other: kept for other, kept in read_tokens(folder).items() if other != address}
    # The last one is where commands act that name none.
    path = write_tokens(folder, {**others, address: token})
    scopes = f" with the scopes {', '.join(account.scopes)}" if account.scopes else ""
    click.echo(f"Signed in to {address} as {account.account}{scopes}. The token is in {path}.")
    if not destination.has_own_store:
        click.echo(f"Commands without --registry act on {address} from now on.")
    option = f" --registry {address}" if destination.has_own_store else ""
    click.echo(f"Try: {destination.program}{option} search WORDS")


@click.command()
@click.argument("registry", metavar="URL")
def logout(*, registry: str) -> None:
    """Forget the token for the registry at URL. It stays valid until it is revoked there."""
    address, folder = check_address(registry), remote_variables().folder
    tokens = read_tokens(folder)
    if tokens.pop(address, None) is None:
        click.echo(f"There is no token for {address} on this machine.")
        return
    write_tokens(folder, tokens)
    click.echo(f"The token for {address} is forgotten here. Revoke it at {address}/account.")


@click.command()
@json_option
def whoami(*, as_json: bool) -> None:
    """Show the account that commands act as, and what it may do."""
    found = run_with_caller(lambda caller: caller.call(WHO_AM_I, NoParameters()))
    if as_json:
        print_json(found)
    elif not found.account:
        click.echo("The operator of this machine: every command may act on its store.")
    else:
        scopes = "" if found.scopes is None else f"; its token may {', '.join(found.scopes)}"
        click.echo(f"{found.account} ({found.role}){scopes}")


def _ask_for_token(address: str, here: Destination) -> str:
    import asyncio
    import platform

    async def work(caller: Caller) -> str:
        label = f"{here.program} on {platform.node()}"[:80]
        asked = await caller.call(ASK_FOR_CODE, AskForCode(label))
        click.echo(f"Open {asked.verification_uri} in a browser and type the code {asked.user_code}")
        click.echo(f"Waiting for you; the code is good for {asked.expires_in // 60} minutes.")
        while True:
            await asyncio.sleep(asked.interval)
            try:
                return (await caller.call(ASK_FOR_TOKEN, AskForToken(asked.device_code))).access_token
            except LoginPending:
                continue

    return RemoteDestination(address, None, here).run(work)


def _read_token(address: str) -> str:
    if sys.stdin.isatty():
        asked: str = click.prompt(f"A token of {address}/account", hide_input=True)
    else:
        asked = sys.stdin.readline()
    token = asked.strip()
    # A header carries it, so it is one word of plain characters.
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        fix = f"give the one that {address}/account shows when you make it"
        raise InvalidInput("This is not a token.", field="token", fix=fix)
    return token
