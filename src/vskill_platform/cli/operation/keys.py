"""`keys`: look at the registry's signing keys, and replace the one that signs."""

from typing import TYPE_CHECKING

import click
import msgspec

from vskill_client.group import PlatformGroup
from vskill_client.output import json_option, print_json, print_table
from vskill_platform.cli.process import require_own_store, run_async, shared_settings

if TYPE_CHECKING:
    from vskill_platform.signing.key_ring import KeyRing


class KeyView(msgspec.Struct, frozen=True):
    """A public key, for programs."""

    key_id: str
    status: str
    pem: str


@click.group(cls=PlatformGroup)
def keys() -> None:
    """Look at the keys that sign attestations, and rotate them."""


@keys.command("list")
@json_option
def list_keys(*, as_json: bool) -> None:
    """List the public keys in the data folder, the one that signs first."""

    async def work() -> list[KeyView]:
        public = await (await _open_ring()).public_keys()
        return [
            KeyView(key.key_id, "retired" if number else "active", key.pem)
            for number, key in enumerate(public)
        ]

    require_own_store()
    views = run_async(work())
    if as_json:
        print_json(views)
        return
    rows = [(key.key_id, key.status, "".join(key.pem.splitlines()[1:-1])) for key in views]
    print_table(f"{len(rows)} keys", ("key id", "status", "public key (DER, base64)"), rows)


@keys.command("rotate")
def rotate() -> None:
    """Sign with a new key from now on; running workers take it up with their next publication.

    The old private key is deleted. Its public key stays and is served, so what it signed stays valid.
    """

    async def work() -> tuple[str, str]:
        ring = await _open_ring()
        before = (await ring.current()).public.key_id
        return before, (await ring.rotate()).public.key_id

    require_own_store()
    before, after = run_async(work())
    click.echo(f"New attestations are signed by {after}; {before} is retired and stays valid.")


async def _open_ring() -> "KeyRing":
    from vskill_platform.bootstrap import open_keys

    return await open_keys(shared_settings())
