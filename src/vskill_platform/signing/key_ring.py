"""The registry's keys: made on first start, kept in a folder that only the owner may read, rotated by command. Retired
public keys stay, because what they signed stays.

In the folder, `signing.key` is the private key that signs, and `<key id>.pub` is every public key that ever did.
Publishing asks the ring for the current key each time, so a rotation needs no restart. Where processes share no folder,
a secret manager gives the key to each; the record store has the public keys of all that signed (`keys.signer`).
"""

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from vskill_core.errors import InvalidSettings, StoreCorrupt, StoreUnavailable, Unsupported
from vskill_core.signing_keys import PUBLIC_SUFFIX, PublicKey, SigningKey, read_public_folder
from vskill_platform.machine.durable_files import force_folder, write_file
from vskill_platform.signing.given_secret import GivenSecret, Stamp, read_secret_file, stamp_of

T = TypeVar("T")

PRIVATE_NAME = "signing.key"


class KeyRing(Protocol):
    """Gives publishing the key that signs, and the web side the keys that verify."""

    async def current(self) -> SigningKey: ...

    async def public_keys(self) -> tuple[PublicKey, ...]:
        """The current key first, then the retired ones."""
        ...

    async def rotate(self) -> SigningKey:
        """Sign with a new key from now on; the public key of the old one stays."""
        ...


class MemoryKeys:
    """A ring for a store that keeps nothing: its key ends with the process."""

    def __init__(self) -> None:
        self._keys = [SigningKey.generate()]

    async def current(self) -> SigningKey:
        return self._keys[-1]

    async def public_keys(self) -> tuple[PublicKey, ...]:
        return tuple(key.public for key in reversed(self._keys))

    async def rotate(self) -> SigningKey:
        self._keys.append(SigningKey.generate())
        return self._keys[-1]


class FileKeys:
    """A ring in a folder. Several processes may open it at once, and make its first key at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loaded: tuple[Stamp, SigningKey] | None = None

    @classmethod
    async def open(cls, folder: Path) -> "FileKeys":
        """Make folder and key if need be; raises a typed error that names the file."""
        ring = cls(folder)
        await ring._in_thread(ring._prepare)
        return ring

    async def current(self) -> SigningKey:
        return await self._in_thread(self._current)

    async def public_keys(self) -> tuple[PublicKey, ...]:
        return await self._in_thread(self._public_keys)

    async def rotate(self) -> SigningKey:
        """A new key signs from now on; the old one's private half is gone, its public half is kept."""
        return await self._in_thread(self._rotate)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(work)
        except OSError as error:
            message = f"The signing keys in {self._folder} cannot be used: {error.strerror or error}."
            raise StoreUnavailable(message, folder=str(self._folder)) from error

    @property
    def _private(self) -> Path:
        return self._folder / PRIVATE_NAME

    def _prepare(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._private.exists():
            self._make_first()
        self._keep_public(self._current().public)

    def _write(self, data: bytes, mode: int = 0o600) -> Path:
        return write_file(self._folder, data, mode, prefix=".unfinished-")

    def _make_first(self) -> None:
        """Several processes may do this at once: `link` fails if the name is taken, so all read the winner's key."""
        unfinished = self._write(SigningKey.generate().to_pem())
        try:
            with contextlib.suppress(FileExistsError):
                os.link(unfinished, self._private)
        finally:
            unfinished.unlink()
        force_folder(self._folder)

    def _current(self) -> SigningKey:
        stamp = stamp_of(self._private)
        if self._loaded is None or self._loaded[0] != stamp:
            self._loaded = (stamp, self._read_private())
        return self._loaded[1]

    def _read_private(self) -> SigningKey:
        pem = read_secret_file(self._private, "signing key", 0o077, f"chmod 600 {self._private}")
        return _parse_key(self._private, pem)

    def _rotate(self) -> SigningKey:
        """Write both public keys before the new private key replaces the old one."""
        fresh = SigningKey.generate()
        self._keep_public(self._current().public)
        self._keep_public(fresh.public)
        self._write(fresh.to_pem()).replace(self._private)
        force_folder(self._folder)
        return fresh

    def _keep_public(self, key: PublicKey) -> None:
        place = self._folder / f"{key.key_id}{PUBLIC_SUFFIX}"
        if not place.exists():
            self._write(key.pem.encode("ascii"), 0o644).replace(place)
            force_folder(self._folder)

    def _public_keys(self) -> tuple[PublicKey, ...]:
        current = self._current().public
        return tuple(dict.fromkeys((current, *read_public_folder(self._folder))))


class GivenKeys:
    """A ring with a key that somebody else keeps. It writes nothing."""

    def __init__(self, given: str) -> None:
        self._given = GivenSecret(
            "VSKILL_SIGNING_KEY", "signing key", given, from_file=_parse_key, from_text=_decode_key
        )

    async def current(self) -> SigningKey:
        return await asyncio.to_thread(self._given.read)

    async def public_keys(self) -> tuple[PublicKey, ...]:
        return ((await self.current()).public,)

    async def rotate(self) -> SigningKey:
        fix = "replace the file, or the variable's value and then restart one process after another"
        raise Unsupported(f"The signing key is given by VSKILL_SIGNING_KEY: {fix}.", fix=fix)


def _parse_key(path: Path, pem: bytes) -> SigningKey:
    try:
        return SigningKey.from_pem(pem)
    except ValueError:
        # The parser's message could quote the private key.
        raise StoreCorrupt(f"{path} is not a private Ed25519 key.") from None


def _decode_key(text: str) -> SigningKey:
    """The lines of a PEM file between the first and the last, joined."""
    try:
        return SigningKey.from_pem(
            f"-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n".encode()
        )
    except ValueError:
        fix = (
            "give a file's path from / on, or what stands between the first and the last line of such a file"
        )
        raise InvalidSettings(f"VSKILL_SIGNING_KEY is no private Ed25519 key: {fix}.", fix=fix) from None
