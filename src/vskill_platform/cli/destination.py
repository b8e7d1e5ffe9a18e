"""What the command line says about acting on this machine: as its operator, or as an account."""

import click

from vskill_client.destination import Destination
from vskill_core.errors import InvalidInput

PROGRAM = "vskill-platform"


class OnThisMachine(Destination):
    """Acts on the registry of this machine."""

    program = PROGRAM

    def __init__(self, account: str | None, *, has_own_store: bool) -> None:
        #: Act as this account instead of as the operator.
        self.account = account
        self.has_own_store = has_own_store


def refuse_elsewhere(registry: str, account: str | None) -> None:
    """Raise InvalidInput where the command line names a registry or an account that the command would not use."""
    if registry:
        fix = "leave out --registry and VSKILL_PLATFORM_REGISTRY, and run it on the server's machine"
        raise InvalidInput("This command works only on the server's machine.", field="--registry", fix=fix)
    if account is not None:
        raise InvalidInput("Only the operator can run this command.", field="--as", fix="leave out --as")


def require_this_machine() -> None:
    """The same, of the command that runs."""
    context = click.get_current_context(silent=True)
    destination = context.find_object(Destination) if context is not None else None
    if destination is not None:
        refuse_elsewhere(
            destination.registry, destination.account if isinstance(destination, OnThisMachine) else None
        )
