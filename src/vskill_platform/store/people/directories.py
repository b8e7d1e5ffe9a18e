"""Directories that send their people and groups by SCIM: the token of each, at `scim:{issuer}`, and their groups, at
`scim_group:{hash}`. What a directory says about a person stands in the account (`DirectoryEntry`)."""

import hmac
from contextlib import suppress

import msgspec

from vskill_core.errors import Conflict, StoreUnavailable
from vskill_platform.domain import keys
from vskill_platform.ledger.kv.entries import ABSENT, Put
from vskill_platform.records import decode, iter_entries, read_record
from vskill_platform.store.people.accounts import DirectoryEntry, LinkedIdentity, User
from vskill_platform.store.people.credentials import USED_EVERY_MS, hash_secret
from vskill_platform.store.people.namespaces import read_access
from vskill_platform.worker_context import require_env


class ScimToken(msgspec.Struct, frozen=True):
    """The record at `scim:{issuer}`."""

    token_hash: str
    made_at: int
    #: To the hour.
    last_used_at: int | None = None


class SentGroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `scim_group:{hash}`."""

    id: str
    issuer: str
    #: As accounts hold it and teams name it. It never changes.
    group: str
    display_name: str
    external_id: str | None = None
    created_at: int = 0


async def read_scim_token(issuer: str) -> ScimToken | None:
    return (await read_record(keys.scim(issuer), ScimToken))[0]


async def is_scim_token(issuer: str, secret: str) -> bool:
    """Whether this is the token of the issuer's directory; the use is noted."""
    token, version = await read_record(keys.scim(issuer), ScimToken)
    if token is None or len(secret) > 200 or not hmac.compare_digest(token.token_hash, hash_secret(secret)):
        return False
    kv = require_env("kv").kv
    now = kv.now()
    if token.last_used_at is None or abs(now - token.last_used_at) >= USED_EVERY_MS:
        used = msgspec.json.encode(msgspec.structs.replace(token, last_used_at=now))
        with suppress(Conflict, StoreUnavailable):
            await kv.commit([Put(keys.scim(issuer), used, version, quiet=True)])
    return True


async def speaks_since(issuer: str) -> int:
    """Since when the issuer's directory has had a token without a break."""
    return (await read_access())[0].directories.get(issuer, 0)


def sent_identity(user: User | None, issuer: str, since: int) -> tuple[LinkedIdentity, DirectoryEntry] | None:
    """The identity of an account that an issuer's directory has sent, and what it says now: the groups of a time before
    it had its token are no longer its word."""
    for one in () if user is None else user.identities:
        entry = one.directory
        if one.issuer == issuer and entry is not None and not entry.deleted:
            kept = entry if entry.since == since else msgspec.structs.replace(entry, since=since, groups=None)
            return one, kept
    return None


async def list_sent(issuer: str) -> list[tuple[User, DirectoryEntry]]:
    """The accounts that an issuer's directory has sent, by name, and what it says about each."""
    since = await speaks_since(issuer)
    users = [decode(entry, User) async for entry in iter_entries(keys.user.prefix)]
    return [(user, found[1]) for user in users if (found := sent_identity(user, issuer, since)) is not None]


async def read_group(issuer: str, identifier: str) -> tuple[SentGroup | None, int]:
    """The record and its version, if it is a group of this issuer's directory."""
    if not identifier.isalnum():
        return None, ABSENT
    group, version = await read_record(keys.scim_group(identifier), SentGroup)
    return (group if group is not None and group.issuer == issuer else None), version


async def list_sent_groups(issuer: str) -> list[SentGroup]:
    groups = [decode(entry, SentGroup) async for entry in iter_entries(keys.scim_group.prefix)]
    return [group for group in groups if group.issuer == issuer]
