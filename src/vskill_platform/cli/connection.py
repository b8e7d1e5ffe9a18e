"""Which registry a command talks to: the one at `--registry`, the store of this machine, or the registry that one
signed in to last."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from vskill_client.destination import Caller, Destination, find_destination
from vskill_core.errors import InvalidInput
from vskill_platform.cli.process import PROGRAM, open_env_and_run
from vskill_platform.settings import has_own_store, keys_folder, process_settings

if TYPE_CHECKING:
    from vskill_core.signing_keys import PublicKey

T = TypeVar("T")


class LocalDestination(Destination):
    """Acts on the registry of this machine, by its actions in this process."""

    program = PROGRAM

    def __init__(self, account: str | None = None) -> None:
        self.account, self.has_own_store = account, has_own_store()

    def run(self, work: Callable[[Caller], Awaitable[T]]) -> T:
        # Loaded before the loop runs: an import reads files.
        from vskill_platform.cli.local_caller import open_caller

        async def act() -> T:
            return await work(await open_caller(self.account))

        return open_env_and_run(act)

    def own_keys(self) -> "tuple[PublicKey, ...]":
        from vskill_core.signing_keys import read_public_folder

        folder = keys_folder(process_settings())
        public = read_public_folder(folder)
        if not public:
            message = f"There is no public key in {folder}."
            raise InvalidInput(message, field="--keys", fix="say whom to trust by --keys or --key")
        return public


def connect(registry: str, account: str | None) -> Destination:
    """This machine, or the registry that is meant instead."""
    here = LocalDestination(account)
    meant = find_destination(registry, here)
    if account is not None and meant is not here:
        message = "--as works only on the server's machine; a remote registry knows you by your token."
        raise InvalidInput(message, field="--as", fix="leave out --as, or --registry")
    return meant
