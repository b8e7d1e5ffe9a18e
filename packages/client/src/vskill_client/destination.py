"""Where a command acts. `vskill-client` acts on a registry at an address; `vskill-platform` can also act on the
registry of its own machine, with a destination of its own. A command does not know which one it has."""

import shlex
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

import click

from vskill_client.registries import check_address, read_tokens, remote_variables
from vskill_client.wire.base import Ans, RegistryCall, Req
from vskill_core.errors import InvalidInput, NotSignedIn

if TYPE_CHECKING:
    from vskill_core.signing_keys import PublicKey

P = ParamSpec("P")
T = TypeVar("T")


class Caller(Protocol):
    """Calls a registry for one command."""

    #: The registry's address; empty on this machine.
    registry: str
    #: Where its pages are; empty where nobody said so.
    pages: str

    async def call(self, call: RegistryCall[Req, Ans], request: Req) -> Ans:
        """The answer, or one of the platform's errors."""
        ...


class Destination:
    """What the command line says about whom to ask, and as whom. This one is for where nobody is named."""

    #: The executable that people type.
    program = "vskill-client"
    #: A registry's address; empty is the registry of this machine.
    registry = ""
    token: str | None = None
    #: On this machine: act as this account instead of as the operator.
    account: str | None = None
    #: Whether commands that name no registry act on this machine.
    has_own_store = False

    def run(self, work: Callable[[Caller], Awaitable[T]]) -> T:
        raise self.no_registry()

    def no_registry(self) -> InvalidInput:
        """For a command that needs one, where none is named."""
        fix = f"sign in to one with '{self.program} login URL', or name one with --registry URL"
        return InvalidInput("There is no registry to ask.", field="--registry", fix=fix)

    def own_keys(self) -> "tuple[PublicKey, ...]":
        fix = "give --registry, --key or --keys"
        raise InvalidInput("Nobody is named whose keys count.", field="--keys", fix=fix)

    def command_line(self, *words: str) -> str:
        """A command as a person types it to act on the same registry, as the same account."""
        there = ("--registry", self.registry) if self.registry else ()
        return shlex.join((self.program, *there, *(("--as", self.account) if self.account else ()), *words))


class RemoteDestination(Destination):
    """Acts on a registry over its JSON API, with a token."""

    def __init__(self, registry: str, token: str | None, here: Destination) -> None:
        self.registry, self.token = registry, token
        self.program, self.has_own_store = here.program, here.has_own_store

    def run(self, work: Callable[[Caller], Awaitable[T]]) -> T:
        # It takes as long to load as everything else that `--help` needs.
        import asyncio

        # Loaded before the loop runs: an import reads files.
        import vskill_client.caller  # noqa: F401 - `_run` uses it

        return asyncio.run(self._run(work))

    async def _run(self, work: Callable[[Caller], Awaitable[T]]) -> T:
        from vskill_client.caller import remote_caller

        async with remote_caller(self.registry, self.token, self.program) as caller:
            try:
                return await work(caller)
            except NotSignedIn as error:
                is_default = error.message == NotSignedIn().message
                message = "You are not signed in at this registry." if is_default else error.message
                fix = f"run '{self.program} login {self.registry}', or set VSKILL_PLATFORM_TOKEN"
                raise NotSignedIn(message, **{"fix": fix, **error.details}) from error


def find_destination(registry: str, here: Destination) -> Destination:
    """For the registry that the command line names, or the environment, or where this machine has no store, the last
    `login`; otherwise `here`. The token is the environment's, or the one that `login` kept."""
    named = remote_variables()
    tokens = read_tokens(named.folder)
    address = registry or named.registry
    if not address and here.account is None and not here.has_own_store:
        address = next(reversed(tokens), "")
    if not address:
        return here
    address = check_address(address)
    return RemoteDestination(address, named.token or tokens.get(address), here)


def current_destination() -> Destination:
    return click.get_current_context().find_object(Destination) or Destination()


def run_with_caller(work: Callable[[Caller], Awaitable[T]]) -> T:
    return current_destination().run(work)


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do what reads or computes for long beside the loop, in which a registry of this machine may run."""
    import asyncio

    return await asyncio.to_thread(work, *args, **kwargs)


def tell_registries() -> None:
    """Where this machine's own store was asked and had nothing: the registries that the person may have meant."""
    if current_destination().registry:
        return
    for address in read_tokens(remote_variables().folder):
        said = f"This asked the store of this machine. For {address}, use --registry {address}."
        click.echo(said, err=True)
