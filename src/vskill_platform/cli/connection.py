"""Which registry a command talks to: the one at `--registry`, the store of this machine, or the registry that one
signed in to last."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

from vskill_platform.cli.destination import Connection
from vskill_platform.cli.process import open_env_and_run, run_async
from vskill_platform.domain.errors import InvalidInput, NotFound, NotSignedIn

if TYPE_CHECKING:
    from vskill_platform.actions.principal import Principal
    from vskill_platform.cli.caller import Caller

T = TypeVar("T")


def connect(registry: str, account: str | None) -> Connection:
    """What the command line names, or the environment, or where this machine has no store, the last `login`; the token
    is the environment's, or the one that `login` kept."""
    from vskill_platform.cli.registries import check_address, read_tokens
    from vskill_platform.settings import has_own_store, remote_variables

    named = remote_variables()
    address = registry or named.registry
    if not address and account is None and not has_own_store():
        address = next(reversed(read_tokens(named.folder)), "")
    if not address:
        return Connection(account=account)
    if account is not None:
        fix = "leave out --as, or --registry"
        raise InvalidInput(
            "--as works only on the server's machine; a remote registry knows you by your token.",
            field="--as",
            fix=fix,
        )
    address = check_address(address)
    return Connection(address, named.token or read_tokens(named.folder).get(address))


def tell_registries() -> None:
    """Where this machine's own store was asked and had nothing: the registries that the person may have meant."""
    connection = click.get_current_context().find_object(Connection) or Connection()
    if connection.registry:
        return
    from vskill_platform.cli.registries import read_tokens
    from vskill_platform.settings import remote_variables

    for address in read_tokens(remote_variables().folder):
        said = f"This asked the store of this machine. For {address}, use --registry {address}."
        click.echo(said, err=True)


def run_with_caller(work: Callable[["Caller"], Awaitable[T]]) -> T:
    """Do a command's work with a caller for the registry that it is about."""
    # Loaded before the loop runs: an import reads files.
    import vskill_platform.actions.table
    import vskill_platform.cli.caller  # noqa: F401 - `_locally` and `_remotely` use it

    connection = click.get_current_context().find_object(Connection) or Connection()
    if connection.registry:
        return run_async(_remotely(connection, work))
    return open_env_and_run(lambda: _locally(connection, work))


async def _remotely(connection: Connection, work: Callable[["Caller"], Awaitable[T]]) -> T:
    from vskill_platform.cli.caller import remote_caller

    async with remote_caller(connection.registry, connection.token) as caller:
        try:
            return await work(caller)
        except NotSignedIn as error:
            is_default = error.message == NotSignedIn().message
            message = "You are not signed in at this registry." if is_default else error.message
            fix = f"run 'vskill-platform login {connection.registry}', or set VSKILL_PLATFORM_TOKEN"
            raise NotSignedIn(message, **{"fix": fix, **error.details}) from error


async def _locally(connection: Connection, work: Callable[["Caller"], Awaitable[T]]) -> T:
    from vskill_platform.cli.caller import LocalCaller
    from vskill_platform.worker_context import require_env

    return await work(LocalCaller(require_env(), await _principal(connection.account)))


async def _principal(account: str | None) -> "Principal":
    """The operator of this machine, or an account in its name."""
    from vskill_platform.actions.principal import OPERATOR, Principal
    from vskill_platform.store.accounts import read_user

    if account is None:
        return OPERATOR
    user, _ = await read_user(account)
    if user is None:
        raise NotFound(f"There is no account {account[:80]!r}.", account=account[:80])
    return Principal(user.name, user.role)
