"""Ed25519 keys: those that sign, those that verify, and public keys as they travel in PEM and JSON."""

import base64
import binascii
import hashlib
from pathlib import Path
from typing import Any

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from vskill_core.errors import InvalidInput, StoreCorrupt
from vskill_core.foreign_json import read_json

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
    """A key that signs. The private key is never shown."""

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
        members = read_json(text, dict[str, Any])
    except msgspec.DecodeError:
        raise _no_key("the file is not a JSON object") from None
    listed = members.get("keys")
    if not isinstance(listed, list) or not listed:
        raise _no_key("the file lists no keys")
    return tuple(dict.fromkeys(public_from_jwk(one if isinstance(one, dict) else {}) for one in listed))


def _no_key(reason: str) -> InvalidInput:
    return InvalidInput(
        f"No public key can be read: {reason}.",
        field="key",
        fix="use a key as /.well-known/vskill-keys.json or vskill-keys.pem gives it",
    )
