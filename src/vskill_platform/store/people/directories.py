"""Directories that send their people and groups by SCIM: the token of each, at `scim:{issuer}`, and their groups, at
`scim_group:{hash}`. What a directory says about a person stands in the account (`DirectoryEntry`)."""

import hashlib
import hmac
from collections.abc import Iterable
from contextlib import suppress

import msgspec

from vskill_core.errors import Conflict, InvalidInput, StoreUnavailable
from vskill_platform.domain import keys
from vskill_platform.ledger.kv.entries import ABSENT, Delete, Operation, Put
from vskill_platform.records import decode, iter_entries, read_entries, read_record
from vskill_platform.store.people.accounts import DirectoryEntry, LinkedIdentity, User
from vskill_platform.store.people.credentials import USED_EVERY_MS, hash_secret
from vskill_platform.store.people.identities import IdentityAccount, hash_identity
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


async def read_sent(issuer: str, names: Iterable[str]) -> dict[str, tuple[User, DirectoryEntry]]:
    """Those of these accounts that an issuer's directory has sent, and what it says about each."""
    since, wanted = await speaks_since(issuer), list[str]()
    for name in names:
        # No account has a name that can be no part of a key.
        with suppress(InvalidInput):
            wanted.append(keys.user(name))
    stored = await read_entries(wanted)
    users = [decode(stored[key], User) for key in wanted if key in stored]
    found = {user.name: (user, sent_identity(user, issuer, since)) for user in users}
    return {name: (user, sent[1]) for name, (user, sent) in found.items() if sent is not None}


# What finds accounts without reading all of them. It is written in the same commit as what the directory says of one.


def name_key(issuer: str, user_name: str) -> str:
    return keys.scim_user(issuer, hashlib.sha256(user_name.casefold().encode()).hexdigest())


async def find_by_name(issuer: str, user_name: str) -> tuple[str | None, int]:
    """The account of a user name of the directory, and the version of the record that says so."""
    found, version = await read_record(name_key(issuer, user_name), IdentityAccount)
    return (None if found is None else found.account), version


async def list_sent_names(issuer: str, start: int, most: int) -> tuple[int, list[str]]:
    """How many accounts the directory has sent, and the names of those on a page; only keys are read of the others."""
    found = await _list_keys(keys.scim_user.under(issuer))
    page = found[start : start + most]
    stored = await read_entries(page)
    return len(found), [decode(stored[key], IdentityAccount).account for key in page if key in stored]


async def list_member_names(group: str) -> list[str]:
    prefix = keys.scim_member.under(group)
    return [key.removeprefix(prefix) for key in await _list_keys(prefix)]


async def _list_keys(prefix: str) -> list[str]:
    kv, found, after = require_env("kv").kv, list[str](), None
    while True:
        page = await kv.list(prefix, after=after)
        found += page.items
        after = page.after
        if after is None:
            return found


def group_id(issuer: str, group: str) -> str:
    return hash_identity(issuer, group)


def forget_sent(account: str, link: LinkedIdentity) -> list[Operation]:
    """Find an account no longer by what the directory of an identity said."""
    said = link.directory
    if said is None or said.deleted:
        return []
    groups = (keys.scim_member(group_id(link.issuer, one), account) for one in said.groups or ())
    return [Delete(key) for key in (name_key(link.issuer, said.user.user_name), *groups)]


async def read_group(issuer: str, identifier: str) -> tuple[SentGroup | None, int]:
    if not identifier.isalnum():
        return None, ABSENT
    group, version = await read_record(keys.scim_group(identifier), SentGroup)
    return (group if group is not None and group.issuer == issuer else None), version


async def list_sent_groups(issuer: str) -> list[SentGroup]:
    groups = [decode(entry, SentGroup) async for entry in iter_entries(keys.scim_group.prefix)]
    return [group for group in groups if group.issuer == issuer]
