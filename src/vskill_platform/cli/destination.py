"""What the command line says about where a command acts: on the registry at `--registry`, or on this machine, as its
operator or as an account."""

import click
import msgspec

from vskill_platform.domain.errors import InvalidInput


class Connection(msgspec.Struct, frozen=True):
    """What the command line says about whom to ask, and as whom."""

    #: A registry's address; empty is the store of this machine.
    registry: str = ""
    token: str | None = None
    #: On this machine: act as this account instead of as its operator.
    account: str | None = None


def require_this_machine(context: click.Context | None = None) -> None:
    """Raise InvalidInput where the command line names a registry or an account that the command would not use."""
    context = context or click.get_current_context(silent=True)
    connection = context.find_object(Connection) if context is not None else None
    if connection is None:
        return
    if connection.registry:
        fix = "leave out --registry and VSKILL_PLATFORM_REGISTRY, and run it on the server's machine"
        raise InvalidInput("This command works only on the server's machine.", field="--registry", fix=fix)
    if connection.account is not None:
        raise InvalidInput("Only the operator can run this command.", field="--as", fix="leave out --as")


def command_line(registry: str, *words: str) -> str:
    """A command as a person types it to act on the same registry; an empty address is this machine."""
    return " ".join(("vskill-platform", *(("--registry", registry) if registry else ()), *words))
