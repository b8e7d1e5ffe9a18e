"""Deploy keys: made here (Ed25519), so that the private half is never anywhere else."""

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat


def make_deploy_key(comment: str) -> tuple[bytes, str]:
    """The private half, and the public one as forges take it."""
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode("ascii")
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()), f"{public} {comment}"
