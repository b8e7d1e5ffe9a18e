"""Records of who controls a repository, at `owner:{host}/{owner}/{repo}`, and of claims that are not proved yet, at
`owner_proof:{repository}:{account}`. What it takes to become an owner is decided in `actions.owners`, what owners may
do in `actions.rights`.

Of a claim's token only the hash is kept, bound to the account and the repository: the token itself stands in public.
"""

from collections.abc import Callable

import msgspec

from vskill_platform.domain import keys
from vskill_platform.domain.identity import Identity
from vskill_platform.kv.contract import iterate_pages
from vskill_platform.kv.entries import ABSENT, Operation, Put
from vskill_platform.records import Skips, decode, persist
from vskill_platform.store.audit import record_audit, was_audited
from vskill_platform.store.github_accounts import controls_by_sign_in
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
    """The record at `owner:{host}/{owner}/{repo}`."""

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
    #: The repository's address as its claimant wrote it; empty in records of 0.1.0.
    url: str = ""


# Owners.


async def ownership_of(repo: Identity) -> Ownership:
    """The record; without owners if nobody has proved control."""
    return (await _read(repo))[0]


async def owners_of(repo: Identity) -> tuple[Owner, ...]:
    """The accounts that control a repository, the first one first."""
    return (await ownership_of(repo)).owners


async def controls_place(account: str, place: Identity) -> bool:
    """Whether the account controls what a place lies in: its repository, or for an upload its namespace."""
    if place.is_upload:
        return account.lower() == place.owner
    return await controls(account, place)


async def controls(account: str, repo: Identity) -> bool:
    """Whether the account has proved it, by the file or by signing in with GitHub as the repository's owner."""
    return (await ownership_of(repo)).has(account) or await controls_by_sign_in(account, repo)


class OwnershipPage(msgspec.Struct, frozen=True):
    """Repositories with owners; `skipped` records are in the log by key."""

    items: tuple[Ownership, ...]
    skipped: int = 0


async def list_owners(account: str | None = None) -> OwnershipPage:
    """Every repository with an owner, or those of one account."""
    env = require_env("kv")
    skips = Skips("list_owners")
    found: list[Ownership] = []
    async for page in iterate_pages(env.kv, keys.OWNER):
        for error in page.failed.values():
            raise error
        decoded = (skips.decode(entry, Ownership) for entry in page.items)
        found += [one for one in decoded if one is not None and one.owners]
    skips.report(env)
    return OwnershipPage(tuple(one for one in found if account is None or one.has(account)), skips.count)


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
    """One commit: the record, its audit entry, and what goes with them."""
    env = require_env("kv")
    entry_id = env.clock.new_id()

    async def write() -> Ownership:
        known, version = await _read(repo)
        if await was_audited(entry_id):
            return known
        changed = change(known)
        audit = record_audit(action, repo.url, by=by, reason=reason, details=details, entry_id=entry_id)
        put = Put(keys.owner(repo), msgspec.json.encode(changed), version)
        await env.kv.commit([put, audit, *operations])
        return changed

    return await persist(write)


async def _read(repo: Identity) -> tuple[Ownership, int]:
    entry = await require_env("kv").kv.get(keys.owner(repo))
    if entry is None:
        return Ownership(repo.repo_key, repo.url), ABSENT
    return decode(entry, Ownership), entry.version


# Claims.


async def put_proof(repo: Identity, proof: Proof, ttl_ms: int) -> None:
    """Store a claim; an earlier one of the same account is replaced."""
    kv = require_env("kv").kv
    key = keys.owner_proof(repo, proof.account)
    await persist(lambda: kv.put(key, msgspec.json.encode(proof), ttl_ms=ttl_ms))


async def read_proof(account: str, repo: Identity) -> tuple[Proof | None, int]:
    """An account's claim and its version; None where there is none that is still good."""
    env = require_env("kv")
    entry = await env.kv.get(keys.owner_proof(repo, account))
    if entry is None:
        return None, ABSENT
    proof = decode(entry, Proof)
    return (proof if proof.expires_at > env.kv.now() else None), entry.version


async def list_proofs(account: str) -> tuple[Proof, ...]:
    """The claims of an account that are still good, the one that expires first first."""
    env = require_env("kv")
    skips = Skips("list_proofs")
    found: list[Proof] = []
    async for page in iterate_pages(env.kv, keys.OWNER_PROOF):
        for error in page.failed.values():
            raise error
        found += [
            proof
            for entry in page.items
            if (proof := skips.decode(entry, Proof)) and proof.account == account
        ]
    skips.report(env)
    good = (proof for proof in found if proof.expires_at > env.kv.now())
    return tuple(sorted(good, key=lambda proof: proof.expires_at))
