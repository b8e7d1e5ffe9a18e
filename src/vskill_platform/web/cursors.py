"""Cursors of event streams as clients see them. The store's own cursor counts every write, also those that a client may
not know of, so a client gets it sealed: it can give it back, and can neither read nor make one."""

import base64
import binascii
import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from vskill_platform.domain.errors import InvalidInput

#: Room for the longest position of any store, so that every sealed cursor has the same length.
_ROOM = 48
_NONCE = 8
#: What all sealed cursors are shorter than, as text.
MOST_CURSOR = 120


class Cursors:
    """Seals the store's cursors with a key that all processes of an installation share."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESSIV(key)

    def of_event(self, position: str) -> str:
        """Of one event, whichever process tells it: the same each time, so that a client knows a double."""
        return self._seal(bytes(_NONCE), position)

    def of_now(self, position: str) -> str:
        """Of no event: never the same twice, so that it does not tell whether anything was written meanwhile."""
        return self._seal(b"\1" + secrets.token_bytes(_NONCE - 1), position)

    def position(self, sealed: str) -> str:
        """The store's cursor; InvalidInput for what was not sealed here."""
        try:
            data = base64.urlsafe_b64decode(sealed.encode("ascii") + b"==")
            plain = self._cipher.decrypt(data, None)
        except (InvalidTag, ValueError, binascii.Error) as error:
            raise InvalidInput(
                "This is not a cursor of this registry.", field="after", fix="leave it out to begin now"
            ) from error
        return plain[_NONCE:].decode("ascii").rstrip()

    def _seal(self, nonce: bytes, position: str) -> str:
        sealed = self._cipher.encrypt(nonce + position.ljust(_ROOM).encode("ascii"), None)
        return base64.urlsafe_b64encode(sealed).decode("ascii").rstrip("=")
