"""The envelope around a signed statement: DSSE version 1, which signs the payload's type and its exact bytes, so that
no canonical form is needed.

Opening one is strict: known members only, one spelling of base64, and the key id must be that of the key that
verifies. So no byte of an envelope as we write it can change unnoticed.
"""

import base64
import binascii
from collections.abc import Iterable

import msgspec

from vskill_core.errors import AttestationInvalid
from vskill_core.foreign_json import read_json
from vskill_core.signing_keys import PublicKey, SigningKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
#: Media type of an envelope.
ENVELOPE_TYPE = "application/vnd.dsse.envelope.v1+json"
#: Far larger than any attestation of ours.
MAX_BYTES = 1024 * 1024
#: Characters of a foreign key id that a message repeats.
KEY_SHOWN = 32


class Signature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One signature and whose it says it is."""

    keyid: str
    sig: str


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """As it is stored and sent."""

    payload: str
    payload_type: str
    signatures: tuple[Signature, ...]


def pae(payload_type: str, payload: bytes) -> bytes:
    """What is signed: the type and the payload, each behind its length in bytes."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def seal(payload: bytes, key: SigningKey, payload_type: str = PAYLOAD_TYPE) -> bytes:
    """The payload in a signed envelope."""
    signature = Signature(key.public.key_id, _base64(key.sign(pae(payload_type, payload))))
    return msgspec.json.encode(Envelope(_base64(payload), payload_type, (signature,)))


def open_envelope(
    data: bytes,
    trusted: Iterable[PublicKey],
    payload_type: str = PAYLOAD_TYPE,
    max_bytes: int = MAX_BYTES,
) -> tuple[bytes, PublicKey]:
    """The payload and the trusted key that signed it; `AttestationInvalid` says what is wrong."""
    envelope = _parse(data, max_bytes)
    if envelope.payload_type != payload_type:
        raise AttestationInvalid(f"Its payload type is {envelope.payload_type[:80]!r}, not {payload_type!r}.")
    payload = _from_base64(envelope.payload, "payload")
    signed = pae(envelope.payload_type, payload)
    keys = {key.key_id: key for key in trusted}
    for signature in envelope.signatures:
        key = keys.get(signature.keyid)
        if key is not None:
            if key.verifies(_from_base64(signature.sig, "signature"), signed):
                return payload, key
            raise AttestationInvalid(
                f"The signature of key {key.key_id} does not match: the statement or the signature was changed."
            )
    named = ", ".join(signature.keyid[:KEY_SHOWN] for signature in envelope.signatures) or "none"
    raise AttestationInvalid(f"None of the trusted keys has signed it; it names {named!r}.")


def read_payload(data: bytes, max_bytes: int = MAX_BYTES) -> bytes:
    """The payload without checking its signature: of an envelope from this registry's own store, or to find out whose
    it says it is."""
    return _from_base64(_parse(data, max_bytes).payload, "payload")


def _parse(data: bytes, max_bytes: int) -> Envelope:
    if len(data) > max_bytes:
        raise AttestationInvalid(f"It is larger than {max_bytes} bytes.")
    try:
        return read_json(data, Envelope)
    except msgspec.DecodeError as error:
        raise AttestationInvalid(f"It is not a DSSE envelope: {error}.") from error


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _from_base64(text: str, what: str) -> bytes:
    """Decode strictly, so that bytes have one spelling: the spare bits of the last character must be zero."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise AttestationInvalid(f"Its {what} is not base64.") from None
    if _base64(data) != text:
        raise AttestationInvalid(f"Its {what} is not base64 in the one valid spelling.")
    return data
