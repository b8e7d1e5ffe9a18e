"""Sealing: secrets of namespaces are encrypted at rest with a key that the record store never sees (AES-256-GCM).

The operator gives one or more keys: the first one seals, and all of them open. Each sealed secret is bound to a context
(its record's key and its public fields), so that it opens nowhere else.
"""

import asyncio
import base64
import binascii
import hashlib
import secrets
from collections.abc import Sequence

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from vskill_core.errors import InvalidSettings, SourceUnavailable
from vskill_platform.domain.people.source_credential import Sealed
from vskill_platform.signing.given_secret import GivenSecret

VARIABLE = "VSKILL_SEALING_KEY"
#: How an operator gets one.
HOW_TO = f"set {VARIABLE} to a file with a key, as `openssl rand -base64 32` makes it"
_KEY_BYTES = 32
_NONCE_BYTES = 12
_MOST_KEYS = 20


class SealingKey(msgspec.Struct, frozen=True):
    """One key. Its id says nothing about it."""

    key_id: str
    cipher: AESGCM


class SealingRing:
    """The keys that this process was given."""

    def __init__(self, given: str) -> None:
        self._given = GivenSecret(
            VARIABLE,
            "sealing key",
            given,
            from_file=lambda _, data: _parse_keys(data.decode("ascii", "replace")),
            from_text=_parse_keys,
        )

    async def keys(self) -> tuple[SealingKey, ...]:
        """The one that seals first."""
        return await asyncio.to_thread(self._given.read)


def seal(key: SealingKey, secret: bytes, context: bytes) -> Sealed:
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return Sealed(key.key_id, nonce + key.cipher.encrypt(nonce, secret, context))


def unseal(keys: Sequence[SealingKey], sealed: Sealed, context: bytes) -> bytes:
    """The secret; SourceUnavailable if this process has not the key, or the record was changed."""
    key = next((one for one in keys if one.key_id == sealed.key_id), None)
    if key is None:
        raise _closed(f"it was sealed with the key {sealed.key_id}, which this process has not been given")
    nonce, text = sealed.text[:_NONCE_BYTES], sealed.text[_NONCE_BYTES:]
    try:
        return key.cipher.decrypt(nonce, text, context)
    except (InvalidTag, ValueError):
        raise _closed("its record was changed by somebody else than this registry") from None


def _closed(reason: str) -> SourceUnavailable:
    return SourceUnavailable(f"A credential of the namespace cannot be opened: {reason}.", host="sealing key")


def _parse_keys(text: str) -> tuple[SealingKey, ...]:
    """Base64, separated by lines or commas."""
    found = [_parse_key(word) for word in text.replace(",", " ").split()]
    if not 0 < len(found) <= _MOST_KEYS:
        raise _bad_keys()
    return tuple(found)


def _parse_key(word: str) -> SealingKey:
    try:
        key = base64.b64decode(word, validate=True)
    except (binascii.Error, ValueError):
        raise _bad_keys() from None
    if len(key) != _KEY_BYTES:
        raise _bad_keys()
    return SealingKey(hashlib.sha256(b"vskill sealing key " + key).hexdigest()[:16], AESGCM(key))


def _bad_keys() -> InvalidSettings:
    fix = "give 32 random bytes in base64, as `openssl rand -base64 32` prints them; further keys only open"
    return InvalidSettings(f"{VARIABLE} is no sealing key: {fix}.", fix=fix)
