"""Signing keys as operators give them."""

from vskill_core.signing_keys import SigningKey


def as_value(key: SigningKey) -> str:
    """What stands between the first and the last line of its file."""
    return "".join(key.to_pem().decode().splitlines()[1:-1])
