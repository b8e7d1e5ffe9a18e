"""Signatures by the Standard Webhooks convention: HMAC-SHA256 over id, time and body, with a secret per receiver."""

import base64
import binascii
import hashlib
import hmac
import secrets

from vskill_core.errors import InvalidInput

PREFIX = "whsec_"
_SECRET_BYTES = 32


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def sign(secret: str, message_id: str, timestamp_s: int, body: bytes) -> dict[str, str]:
    signed = f"{message_id}.{timestamp_s}.".encode() + body
    digest = hmac.new(_key(secret), signed, hashlib.sha256).digest()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def _key(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error as error:
        raise InvalidInput(
            "The secret is not base64.", field="secret", fix="let the platform make one"
        ) from error
