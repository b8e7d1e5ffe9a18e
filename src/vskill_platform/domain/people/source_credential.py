"""Credentials of a namespace: what opens its private repositories, and for which of them each one is.

A credential is used for repositories of its own namespace only, on behalf of those who may submit there, and while the
namespace has a visibility: what is fetched with it belongs to the namespace's readers.
"""

from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType

import msgspec

from vskill_core.errors import InvalidInput
from vskill_core.identity import CASELESS_HOSTS, Identity, normalise
from vskill_platform.domain.people.namespace import namespace_of

MOST_CREDENTIALS = 20
MOST_HOST_KEYS = 10
SSH_PORT = 22
#: The Ed25519 host keys that these forges publish, by their fingerprints.
KNOWN_HOST_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "bitbucket.org": "SHA256:ybgmFkzwOSotHTHLJgHO0QN8L0xErw6vd0VhFA9m3SM",
        "codeberg.org": "SHA256:mIlxA9k46MmM6qdJOdMnAQpzGxF4WIVVL+fj+wZbw0g",
        "github.com": "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU",
        "gitlab.com": "SHA256:eUXGGm1YGsMAS7vkcx6JOJdOGHPem5gQp4taiCfCLB8",
    }
)
_HASH = "SHA256:"
#: 32 bytes in base64 without padding.
_HASH_LENGTH = 43


class Sealed(msgspec.Struct, frozen=True):
    """A secret that only a sealing key opens."""

    key_id: str
    #: Nonce and ciphertext.
    text: bytes


class SourceCredential(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A token for https, or a deploy key for SSH."""

    id: str
    #: What it is for, as `address_of` writes it: `host/owner` or `host/owner/repository`.
    address: str
    #: Whom it signs in as.
    user: str
    sealed: Sealed
    by: str
    created_at: int
    #: The public half of a deploy key; empty for a token.
    public_key: str = ""
    #: Where a deploy key's server listens.
    port: int = SSH_PORT
    #: Fingerprints of the host keys that it may show.
    host_keys: tuple[str, ...] = ()

    def context(self, record: str) -> bytes:
        """What the secret is bound to: nobody who can write records can have it used elsewhere."""
        parts = (record, self.id, self.address, self.user)
        server = (self.public_key, self.port, self.host_keys) if self.public_key else ()
        return msgspec.json.encode((*parts, *server))


class NamespaceCredentials(msgspec.Struct, frozen=True):
    """The record at `credentials:{namespace}`."""

    name: str
    credentials: tuple[SourceCredential, ...] = ()

    def for_place(self, place: Identity) -> SourceCredential | None:
        """The one for the narrowest address; of several, the newest."""
        fitting = [one for one in self.credentials if covers(self.name, one.address, place)]
        return max(fitting, key=lambda one: (len(one.address), one.id), default=None)


def address_of(place: Identity) -> str:
    """A repository as credentials name it."""
    address = f"{place.host}/{place.owner}/{place.repo}"
    return address.lower() if place.host in CASELESS_HOSTS else address


def covers(namespace: str, address: str, place: Identity) -> bool:
    """Whether a credential of this namespace is for a place. A group's address also begins those of its subgroups,
    which are namespaces of their own."""
    return namespace_of(place) == namespace and f"{address_of(place)}/".startswith(f"{address}/")


def read_address(text: str, namespace: str) -> str:
    """The address of a repository or of an owner, which must be in this namespace. A subgroup is written as a
    repository of its group is."""
    of_owner = f"{text.rstrip('/')}/any"
    try:
        place = normalise(text)
        address = address_of(place)
    except InvalidInput:
        place = normalise(of_owner)
        address = address_of(place).rpartition("/")[0]
    if namespace_of(place) != namespace:
        with suppress(InvalidInput):
            owned = normalise(of_owner)
            if namespace_of(owned) == namespace:
                return address_of(owned).rpartition("/")[0]
        message = f"{address} is not in the namespace {namespace}."
        fix = f"repositories there are in {namespace_of(place)}: add it to that one"
        raise InvalidInput(message, field="repo_url", fix=fix)
    return address


def host_keys_of(address: str, port: int) -> tuple[str, ...]:
    """What is known of the host without asking anybody."""
    known = KNOWN_HOST_KEYS.get(address.partition("/")[0])
    return (known,) if known is not None and port == SSH_PORT else ()


def read_host_keys(text: str) -> tuple[str, ...]:
    """Fingerprints as `ssh-keygen -l` prints them, separated by spaces or commas."""
    found = tuple(dict.fromkeys(text.replace(",", " ").split()))
    if len(found) > MOST_HOST_KEYS or not all(map(_is_fingerprint, found)):
        fix = f"give up to {MOST_HOST_KEYS} fingerprints such as {KNOWN_HOST_KEYS['github.com']}"
        raise InvalidInput("The host key is no fingerprint.", field="host_key", fix=fix)
    return found


def _is_fingerprint(word: str) -> bool:
    digest = word.removeprefix(_HASH)
    is_base64 = digest.isascii() and digest.replace("+", "").replace("/", "").isalnum()
    return word.startswith(_HASH) and len(digest) == _HASH_LENGTH and is_base64
