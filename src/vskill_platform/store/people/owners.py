"""Who controls a repository: members of its namespace whose role covers that repository; and claims that are not
proved yet, at `owner_proof:{repository}:{account}`. `actions.people.owners` decides how to become an owner,
`actions.principal` what owners may do.

Only the hash of a claim's token is kept, bound to the account and the repository: the token itself is published.
"""

from collections.abc import Callable

import msgspec

from vskill_core.identity import GITHUB_HOST, Identity
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import (
    Directory,
    Member,
    Namespace,
    NamespaceRole,
    is_taken_from,
    maintainers_in,
    namespace_of,
    role_of,
    uploader_of,
)
from vskill_platform.ledger.kv.entries import Operation
from vskill_platform.records import decode_readable, iter_entries, persist, read_record
from vskill_platform.setting_issuers import GROUP_PREFIX
from vskill_platform.store.people.accounts import User, read_user
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.people.github_accounts import find_signed_in
from vskill_platform.store.people.namespaces import NamespaceChange, change_namespace, read_directory
from vskill_platform.store.people.sign_in_rule import standing_of
from vskill_platform.worker_context import require_env


class Owner(msgspec.Struct, frozen=True, omit_defaults=True):
    """An account that controls the repository."""

    account: str
    since: int
    #: `file`: it put its token there; `transfer`: an owner handed it over
    how: str
    #: The commit in which the token was found.
    commit: str | None = None
    #: The account that handed it over, and why.
    handed_over_by: str | None = None
    reason: str = ""


class Ownership(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who controls a repository."""

    repo: str
    url: str
    #: Oldest first.
    owners: tuple[Owner, ...] = ()

    def has(self, account: str) -> bool:
        return any(owner.account == account for owner in self.owners)


class Proof(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `owner_proof:{repository}:{account}`; gone when it has served or expired."""

    account: str
    repo: str
    #: SHA-256 of the token, in hexadecimal.
    token_hash: str
    expires_at: int
    #: The repository's address as its claimant wrote it.
    url: str


# Owners.


async def ownership_of(repo: Identity) -> Ownership:
    return ownership_in(await read_directory(), repo)


async def owners_of(repo: Identity) -> tuple[Owner, ...]:
    return (await ownership_of(repo)).owners


async def role_at(
    account: str, place: Identity, groups: frozenset[str] = frozenset()
) -> NamespaceRole | None:
    """The highest role that an account has at a place: in its namespace, in its repository, or by what it proved."""
    directory = await read_directory()
    role = await _role(directory, account, namespace_of(place), groups, place.repo_key)
    if role in {NamespaceRole.OWNER, NamespaceRole.MAINTAINER}:
        return role
    return NamespaceRole.MAINTAINER if ownership_in(directory, place).has(account) else role


async def find_maintainers(place: Identity) -> list[str]:
    """The accounts that maintain or own a place: those that `role_at` gives one of these roles."""
    directory = await read_directory()
    name = namespace_of(place)
    accounts = maintainers_in(directory, name, place.repo_key)
    accounts |= {owner.account for owner in ownership_in(directory, place).owners}
    groups = {one for one in accounts if one.startswith(GROUP_PREFIX)}
    accounts = accounts - groups | (await _accounts_in(groups) if groups else set())
    by_name = await find_owner_by_name(directory.namespaces.get(name, Namespace(name)))
    return sorted(accounts if by_name is None else accounts | {by_name})


async def _accounts_in(groups: set[str]) -> set[str]:
    """The accounts whose last sign-in put them into one of the groups, and is recent enough to read by."""
    entries = [entry async for entry in iter_entries(keys.user.prefix)]
    standings = [
        await standing_of(user, by_token=True)
        for user in decode_readable(entries, User, "accounts_in_groups")
        if user.identities
    ]
    return {one.name for one in standings if one is not None and not groups.isdisjoint(one.groups)}


async def groups_of(account: str) -> frozenset[str]:
    user, _ = await read_user(account)
    standing = None if user is None else await standing_of(user, by_token=True)
    return frozenset() if standing is None else standing.groups


async def role_in(account: str, name: str, groups: frozenset[str] = frozenset()) -> NamespaceRole | None:
    """The highest role that an account, in these groups, has in a whole namespace."""
    return await _role(await read_directory(), account, name, groups)


async def _role(
    directory: Directory, account: str, name: str, groups: frozenset[str], repo: str = ""
) -> NamespaceRole | None:
    namespace = directory.namespaces.get(name, Namespace(name))
    role = role_of(namespace, account, directory.principals(account, groups), repo)
    if role is NamespaceRole.OWNER or uploader_of(name) is not None:
        return role
    return NamespaceRole.OWNER if await find_owner_by_name(namespace) == account else role


async def find_owner_by_name(namespace: Namespace) -> str | None:
    """The account that owns a namespace by its name: it uploads there, or first proved the login. None if others manage
    the namespace already, such as an admin who made it for a team."""
    uploader = uploader_of(namespace.name)
    if uploader is not None:
        is_owned = not namespace.released and (await read_user(uploader))[0] is not None
        return uploader if is_owned else None
    host, _, owner = namespace.name.rpartition("~")
    place = Identity(host.replace("_", ":") or GITHUB_HOST, owner, "any")
    account = await find_signed_in(place)
    return None if account is None or is_taken_from(namespace, account) else account


async def namespace_by_sign_in(account: str) -> str | None:
    """The namespace of the login that the account last signed in with, if it proved that login first."""
    user, _ = await read_user(account)
    if user is None or user.github is None:
        return None
    place = Identity(user.github.issuer, user.github.login, "any")
    return namespace_of(place) if await find_signed_in(place) == account else None


def ownership_in(directory: Directory, repo: Identity) -> Ownership:
    """Who controls a repository, by its namespace; without owners if nobody has proved it."""
    namespace = directory.namespaces.get(namespace_of(repo))
    owners = _owners_in(namespace, repo.repo_key) if namespace is not None else ()
    return Ownership(repo.repo_key, repo.url, owners)


def _owners_in(namespace: Namespace, repo: str) -> tuple[Owner, ...]:
    return tuple(
        Owner(one.principal.removeprefix("user:"), one.since, one.how, one.commit, one.by, one.reason)
        for one in namespace.members
        if one.repo == repo and one.principal.startswith("user:") and one.role is NamespaceRole.MAINTAINER
    )


async def list_owners(account: str | None = None) -> tuple[Ownership, ...]:
    found: dict[str, Ownership] = {}
    for namespace in (await read_directory()).namespaces.values():
        for repo, url in {one.repo: one.url for one in namespace.members if one.repo}.items():
            found[repo] = Ownership(repo, url, _owners_in(namespace, repo))
    owned = (found[repo] for repo in sorted(found))
    return tuple(one for one in owned if account is None or one.has(account))


async def change_ownership(
    repo: Identity,
    change: Callable[[Ownership], Ownership],
    *,
    action: str,
    by: str,
    reason: str,
    details: dict[str, str],
    operations: tuple[Operation, ...] = (),
) -> Ownership:
    """One commit: the members of the namespace, the audit entry, and what goes with them."""

    async def fold(namespace: Namespace) -> NamespaceChange:
        changed = change(Ownership(repo.repo_key, repo.url, _owners_in(namespace, repo.repo_key)))
        others = [one for one in namespace.members if one.repo != repo.repo_key]
        folded = msgspec.structs.replace(namespace, members=(*others, *_members(changed)))
        return NamespaceChange(folded, operations)

    note = AuditNote(action, repo.url, by, reason, details)
    written = await change_namespace(namespace_of(repo), fold, note)
    return Ownership(repo.repo_key, repo.url, _owners_in(written, repo.repo_key))


def _members(known: Ownership) -> tuple[Member, ...]:
    return tuple(
        Member(
            f"user:{one.account}",
            NamespaceRole.MAINTAINER,
            one.since,
            one.how,
            repo=known.repo,
            url=known.url,
            commit=one.commit,
            by=one.handed_over_by,
            reason=one.reason,
        )
        for one in known.owners
    )


# Claims.


async def put_proof(repo: Identity, proof: Proof, ttl_ms: int) -> None:
    """Store a claim; an earlier one of the same account is replaced."""
    kv = require_env("kv").kv
    key = keys.owner_proof(repo.repo_key, proof.account)
    await persist(lambda: kv.put(key, msgspec.json.encode(proof), ttl_ms=ttl_ms))


async def read_proof(account: str, repo: Identity) -> tuple[Proof | None, int]:
    """An account's claim and its version; None if it has none or it expired."""
    proof, version = await read_record(keys.owner_proof(repo.repo_key, account), Proof)
    is_good = proof is not None and proof.expires_at > require_env("kv").kv.now()
    return (proof if is_good else None), version


async def list_proofs(account: str) -> tuple[Proof, ...]:
    now = require_env("kv").kv.now()
    proofs = decode_readable(
        [entry async for entry in iter_entries(keys.owner_proof.prefix)], Proof, "list_proofs"
    )
    good = (proof for proof in proofs if proof.account == account and proof.expires_at > now)
    return tuple(sorted(good, key=lambda proof: proof.expires_at))
