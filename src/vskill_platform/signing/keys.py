"""The registry's Ed25519 keys: made on first start, kept in a folder that only the owner may read, rotated by
command. Retired public keys stay, because what they signed stays.

In the folder, `signing.key` is the private key that signs, and `<key id>.pub` is every public key that ever did.
Publishing asks the ring for the current key each time, so a rotation needs no restart.
"""

import asyncio
import base64
import binascii
import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from vskill_platform.domain.errors import InvalidInput, InvalidSettings, StoreCorrupt, StoreUnavailable

T = TypeVar("T")

PRIVATE_NAME = "signing.key"
PUBLIC_SUFFIX = ".pub"
KEY_ID_LENGTH = 16
RAW_LENGTH = 32


class PublicKey(msgspec.Struct, frozen=True):
    """A key that verifies."""

    #: the 32 bytes of Ed25519
    raw: bytes

    @property
    def key_id(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of the raw key."""
        return hashlib.sha256(self.raw).hexdigest()[:KEY_ID_LENGTH]

    @property
    def pem(self) -> str:
        encoded = Ed25519PublicKey.from_public_bytes(self.raw).public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return encoded.decode("ascii")

    @property
    def x(self) -> str:
        """As JSON Web Keys write it: base64url without padding."""
        return base64.urlsafe_b64encode(self.raw).rstrip(b"=").decode("ascii")

    def verifies(self, signature: bytes, data: bytes) -> bool:
        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, data)
        except InvalidSignature:
            return False
        return True


class SigningKey:
    """A key that signs. What it is made of is never shown."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public = PublicKey(private.public_key().public_bytes_raw())

    @classmethod
    def generate(cls) -> "SigningKey":
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_pem(cls, pem: bytes) -> "SigningKey":
        """ValueError for anything but an Ed25519 private key."""
        try:
            private = serialization.load_pem_private_key(pem, password=None)
        except (TypeError, UnsupportedAlgorithm) as error:
            raise ValueError(str(error)) from None
        if not isinstance(private, Ed25519PrivateKey):
            raise ValueError("it is not an Ed25519 key")  # noqa: TRY004 - the caller asks for one error
        return cls(private)

    def to_pem(self) -> bytes:
        return self._private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def sign(self, data: bytes) -> bytes:
        return self._private.sign(data)


class KeyRing(Protocol):
    """Where publishing finds the key that signs, and the web side those that verify."""

    async def current(self) -> SigningKey: ...

    async def public_keys(self) -> tuple[PublicKey, ...]:
        """The current key first, then those that it replaced."""
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
        self._loaded: tuple[_Stamp, SigningKey] | None = None

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

    def _make_first(self) -> None:
        """A link fails where the name is taken, so of several processes one makes the key and all read it."""
        unfinished = _write_file(self._folder, SigningKey.generate().to_pem())
        try:
            with contextlib.suppress(FileExistsError):
                os.link(unfinished, self._private)
        finally:
            unfinished.unlink()
        _force(self._folder)

    def _current(self) -> SigningKey:
        stamp = _stamp(self._private)
        if self._loaded is None or self._loaded[0] != stamp:
            self._loaded = (stamp, self._read_private())
        return self._loaded[1]

    def _read_private(self) -> SigningKey:
        with self._private.open("rb") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                fix = f"chmod 600 {self._private}"
                raise InvalidSettings(
                    f"The signing key {self._private} can be read by others: {fix}.", fix=fix
                )
            pem = file.read()
        try:
            return SigningKey.from_pem(pem)
        except ValueError:
            # The parser's own words could quote the file.
            raise StoreCorrupt(f"{self._private} is not a private Ed25519 key.") from None

    def _rotate(self) -> SigningKey:
        """Both public keys are kept before the new private one takes the place of the old."""
        fresh = SigningKey.generate()
        self._keep_public(self._current().public)
        self._keep_public(fresh.public)
        _write_file(self._folder, fresh.to_pem()).replace(self._private)
        _force(self._folder)
        return fresh

    def _keep_public(self, key: PublicKey) -> None:
        place = self._folder / f"{key.key_id}{PUBLIC_SUFFIX}"
        if not place.exists():
            _write_file(self._folder, key.pem.encode("ascii"), 0o644).replace(place)
            _force(self._folder)

    def _public_keys(self) -> tuple[PublicKey, ...]:
        current = self._current().public
        return tuple(dict.fromkeys((current, *read_public_folder(self._folder))))


def read_public_folder(folder: Path) -> tuple[PublicKey, ...]:
    """Every public key that a ring keeps in its folder, without touching the private one."""
    found = []
    for path in sorted(folder.glob(f"*{PUBLIC_SUFFIX}")):
        try:
            found.append(public_from_pem(path.read_bytes()))
        except InvalidInput as error:
            raise StoreCorrupt(f"{path} is not a public Ed25519 key.") from error
    return tuple(found)


# Public keys as they travel.


def public_from_pem(pem: bytes) -> PublicKey:
    try:
        key = serialization.load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise _no_key("it is not the PEM text of a public Ed25519 key")
    return PublicKey(key.public_bytes_raw())


def jwk(key: PublicKey, **members: str) -> dict[str, str]:
    """One JSON Web Key (RFC 8037), with members of our own behind the standard ones."""
    standard = {"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA"}
    return {**standard, "kid": key.key_id, "x": key.x, **members}


def public_from_jwk(members: dict[str, Any]) -> PublicKey:
    x = members.get("x")
    if (members.get("kty"), members.get("crv")) != ("OKP", "Ed25519") or not isinstance(x, str):
        raise _no_key("it is not an Ed25519 key of kind OKP")
    try:
        raw = base64.urlsafe_b64decode(x + "=" * (-len(x) % 4))
    except (binascii.Error, ValueError):
        raise _no_key("its x is not base64url") from None
    key = PublicKey(raw)
    if len(raw) != RAW_LENGTH or key.x != x:
        raise _no_key("its x is not the base64url text of 32 bytes")
    return key


def public_from_jwks(text: bytes) -> tuple[PublicKey, ...]:
    """Every Ed25519 key of a JSON Web Key Set; `InvalidInput` where there is none."""
    try:
        members = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _no_key("the file is not a JSON object") from None
    listed = members.get("keys")
    if not isinstance(listed, list) or not listed:
        raise _no_key("the file lists no keys")
    return _distinct(public_from_jwk(one if isinstance(one, dict) else {}) for one in listed)


def _distinct(keys: Iterable[PublicKey]) -> tuple[PublicKey, ...]:
    return tuple(dict.fromkeys(keys))


def _no_key(reason: str) -> InvalidInput:
    return InvalidInput(
        f"No public key can be read: {reason}.",
        field="key",
        fix="use a key as /.well-known/vskill-keys.json or vskill-keys.pem gives it",
    )


# Files.

_Stamp = tuple[int, int, int]


def _stamp(path: Path) -> _Stamp:
    """Tells one file of a name from the next one of that name."""
    found = path.stat()
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def _write_file(folder: Path, data: bytes, mode: int = 0o600) -> Path:
    """The data in a file of its own, whole and on the disk; the caller gives it its name."""
    handle, name = tempfile.mkstemp(dir=folder, prefix=".unfinished-")
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)


def _force(folder: Path) -> None:
    """A new name survives a power cut only once its folder is on the disk too."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
