"""Credentials of a namespace: what opens its private repositories, and for which of them each one is.

A credential is used for repositories of its own namespace only, on behalf of those who may submit there, and while the
namespace has a visibility: what is fetched with it belongs to the namespace's readers.
"""

import msgspec

from vskill_core.errors import InvalidInput
from vskill_core.identity import CASELESS_HOSTS, Identity, normalise
from vskill_platform.domain.people.namespace import namespace_of

MOST_CREDENTIALS = 20


class Sealed(msgspec.Struct, frozen=True):
    """A secret that only a sealing key opens."""

    key_id: str
    #: Nonce and ciphertext.
    text: bytes


class SourceCredential(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A token for https."""

    id: str
    #: What it is for, as `address_of` writes it: `host/owner` or `host/owner/repository`.
    address: str
    #: Whom it signs in as.
    user: str
    sealed: Sealed
    by: str
    created_at: int

    def context(self, record: str) -> bytes:
        """What the secret is bound to: nobody who can write records can send it elsewhere."""
        parts = (record, self.id, self.address, self.user)
        return msgspec.json.encode(parts)


class NamespaceCredentials(msgspec.Struct, frozen=True):
    """The record at `credentials:{namespace}`."""

    name: str
    credentials: tuple[SourceCredential, ...] = ()

    def for_place(self, place: Identity) -> SourceCredential | None:
        """The one for the narrowest address; of several, the newest."""
        fitting = [one for one in self.credentials if covers(one.address, place)]
        return max(fitting, key=lambda one: (len(one.address), one.id), default=None)


def address_of(place: Identity) -> str:
    """A repository as credentials name it."""
    address = f"{place.host}/{place.owner}/{place.repo}"
    return address.lower() if place.host in CASELESS_HOSTS else address


def covers(address: str, place: Identity) -> bool:
    return f"{address_of(place)}/".startswith(f"{address}/")


def read_address(text: str, namespace: str) -> str:
    """The address of a repository or of an owner, which must be in this namespace."""
    try:
        place = normalise(text)
        address = address_of(place)
    except InvalidInput:
        # An owner alone.
        place = normalise(f"{text.rstrip('/')}/any")
        address = address_of(place).rpartition("/")[0]
    if namespace_of(place) != namespace:
        message = f"{address} is not in the namespace {namespace}."
        fix = f"repositories there are in {namespace_of(place)}: add it to that one"
        raise InvalidInput(message, field="repo_url", fix=fix)
    return address
