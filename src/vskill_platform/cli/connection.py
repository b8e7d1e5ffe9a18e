"""Which registry a command talks to: the one at `--registry`, the store of this machine, or the registry that one
signed in to last."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from vskill_client.destination import Caller, Destination, RemoteDestination
from vskill_client.registries import check_address, read_tokens, remote_variables
from vskill_core.errors import InvalidInput
from vskill_platform.cli.destination import PROGRAM, OnThisMachine
from vskill_platform.cli.process import open_env_and_run

if TYPE_CHECKING:
    from vskill_core.signing_keys import PublicKey

T = TypeVar("T")


class LocalDestination(OnThisMachine):
    """Acts on the registry of this machine, by its actions in this process."""

    def run(self, work: Callable[[Caller], Awaitable[T]]) -> T:
        # Loaded before the loop runs: an import reads files.
        from vskill_platform.cli.local_caller import open_caller

        async def act() -> T:
            return await work(await open_caller(self.account))

        return open_env_and_run(act)

    def own_keys(self) -> "tuple[PublicKey, ...]":
        from vskill_core.signing_keys import read_public_folder
        from vskill_platform.settings import keys_folder, process_settings

        folder = keys_folder(process_settings())
        found = read_public_folder(folder)
        if not found:
            message = f"There is no public key in {folder}."
            raise InvalidInput(message, field="--keys", fix="say whom to trust by --keys or --key")
        return found


def connect(registry: str, account: str | None) -> Destination:
    """What the command line names, or the environment, or where this machine has no store, the last `login`; the token
    is the environment's, or the one that `login` kept."""
    from vskill_platform.settings import has_own_store

    named, own = remote_variables(), has_own_store()
    address = registry or named.registry
    if not address and account is None and not own:
        address = next(reversed(read_tokens(named.folder)), "")
    if not address:
        return LocalDestination(account, has_own_store=own)
    if account is not None:
        fix = "leave out --as, or --registry"
        raise InvalidInput(
            "--as works only on the server's machine; a remote registry knows you by your token.",
            field="--as",
            fix=fix,
        )
    address = check_address(address)
    token = named.token or read_tokens(named.folder).get(address)
    return RemoteDestination(address, token, PROGRAM, has_own_store=own)
