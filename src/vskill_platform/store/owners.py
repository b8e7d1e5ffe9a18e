"""Who has proved control of a repository, at `owner:{host}/{owner}/{repo}`, and the proofs that are under way.

An account gets a token, puts it into a file at the default branch, and asks for the file to be read: whoever can do
that controls the repository. Only the token's hash is kept, bound to the account and the repository, so a token that
stands in public serves nobody else. Being the first to submit gives no right at all.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable

import msgspec

from vskill_platform.domain import keys
from vskill_platform.domain.errors import InvalidInput, NotPermitted, Unsupported
from vskill_platform.domain.identity import Identity, has_control_characters
from vskill_platform.kv.contract import iterate_pages
from vskill_platform.kv.entries import ABSENT, Delete, Operation, Put
from vskill_platform.sources.contract import Watchable
from vskill_platform.store.audit import record_audit, was_audited
from vskill_platform.store.github_accounts import controls_by_sign_in
from vskill_platform.store.records import Skips, decode
from vskill_platform.submission_store import persist, require_reason
from vskill_platform.worker_context import require_env

#: Where the token stands in the repository: one to a line, so that several accounts can prove it side by side.
PROOF_FILE = ".well-known/vskill-owner.txt"
PROOF_MS = 7 * 24 * 3_600_000
TOKEN_PREFIX = "vskill-owner-"  # noqa: S105 - how every token begins

MOST_OWNERS = 20
MOST_ACCOUNT = 100
#: What is read of the file.
_MOST_BYTES = 16 * 1024
_MOST_LINES = 200


class Owner(msgspec.Struct, frozen=True, omit_defaults=True):
    """An account that controls the repository."""

    account: str
    since: int
    #: `file`: it put its token there; `transfer`: an owner handed it over
    how: str
    #: The commit in which the token was found.
    commit: str | None = None


class Ownership(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `owner:{host}/{owner}/{repo}`."""

    repo: str
    url: str
    #: Oldest first.
    owners: tuple[Owner, ...] = ()

    def has(self, account: str) -> bool:
        return any(owner.account == account for owner in self.owners)


class Proof(msgspec.Struct, frozen=True):
    """The record at `owner_proof:{repository}:{account}`; gone when it has served or expired."""

    account: str
    repo: str
    #: SHA-256 of the token, in hexadecimal.
    token_hash: str
    expires_at: int


class Started(msgspec.Struct, frozen=True):
    """What to do for a proof; the token is shown once."""

    token: str
    #: The file in the repository, at its default branch.
    path: str
    url: str
    expires_at: int


# Proving.


async def start_proof(account: str, repo: Identity) -> Started:
    """A new token for this account and repository; an earlier one is no longer good."""
    _check_repository(repo)
    _check_account(account)
    env = require_env("kv")
    token = TOKEN_PREFIX + secrets.token_urlsafe(32)
    now = env.kv.now()
    proof = Proof(account, repo.repo_key, _hash(token), now + PROOF_MS)
    key = keys.owner_proof(repo, account)
    await persist(lambda: env.kv.put(key, msgspec.json.encode(proof), ttl_ms=PROOF_MS))
    return Started(token, PROOF_FILE, repo.url, proof.expires_at)


async def check_proof(account: str, repo: Identity) -> Ownership:
    """Read the file, and where it holds the account's token, make it an owner. NotPermitted says what was missing."""
    _check_repository(repo)
    proof, version = await _pending(account, repo)
    if proof is None:
        known = await ownership_of(repo)
        if known.has(account):
            return known
        message = f"{account} has no token for {repo.url}, or it has expired; ask for one first."
        raise NotPermitted(message, account=account, repo=repo.repo_key)
    commit = await _find_token(repo, proof)
    owner = Owner(account, require_env("kv").kv.now(), "file", commit)
    spent = Delete(keys.owner_proof(repo, account), version)
    reason = f"its token stands in {PROOF_FILE}"
    return await _change(
        repo,
        lambda known: _added(known, owner),
        action="owner added",
        by=f"user:{account}",
        reason=reason,
        details={"account": account, "commit": commit},
        operations=(spent,),
    )


async def _pending(account: str, repo: Identity) -> tuple[Proof | None, int]:
    env = require_env("kv")
    entry = await env.kv.get(keys.owner_proof(repo, _check_account(account)))
    if entry is None:
        return None, ABSENT
    proof = decode(entry, Proof)
    return (proof if proof.expires_at > env.kv.now() else None), entry.version


async def _find_token(repo: Identity, proof: Proof) -> str:
    """The commit whose file holds the token."""
    sources = require_env("sources").sources
    if not isinstance(sources, Watchable):
        raise Unsupported("The configured source cannot look into repositories.")
    look = await sources.look(repo, (PROOF_FILE,))
    data = look.files.get(PROOF_FILE)
    where = f"{PROOF_FILE} at the default branch of {repo.url} (commit {look.commit[:12]})"
    if data is None:
        raise NotPermitted(
            f"There is no file {where}; commit it with the token, and try again.", path=PROOF_FILE
        )
    if not _holds(data, proof.token_hash):
        raise NotPermitted(
            f"{where} does not hold the token of {proof.account}; put it on a line of its own.",
            path=PROOF_FILE,
        )
    return look.commit


def _holds(data: bytes, token_hash: str) -> bool:
    """Every line is compared, in the same time whether or not it fits."""
    lines = data[:_MOST_BYTES].decode("utf-8", "replace").split("\n")[:_MOST_LINES]
    fits = [hmac.compare_digest(_hash(line.strip()), token_hash) for line in lines]
    return any(fits)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


# Asking.


async def ownership_of(repo: Identity) -> Ownership:
    """The record; one without owners where nobody has proved anything."""
    return (await _read(repo))[0]


async def owners_of(repo: Identity) -> tuple[Owner, ...]:
    """The accounts that control a repository, the first one first."""
    return (await ownership_of(repo)).owners


async def require_owner(account: str, repo: Identity) -> None:
    """NotPermitted unless the account controls the repository. An upload belongs to its namespace's account."""
    _check_account(account)
    if repo.is_upload:
        if account.lower() == repo.owner:
            return
        message = f"{repo.url} belongs to the namespace {repo.owner}, not to {account}."
        raise NotPermitted(message, account=account, repo=repo.repo_key)
    if not await controls(account, repo):
        message = (
            f"{account} has not proved control of {repo.url}; 'owner claim' says how, and "
            "submitting it first gives no right."
        )
        raise NotPermitted(message, account=account, repo=repo.repo_key)


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


# Handing over.


async def transfer(repo: Identity, *, account: str, to: str, reason: str) -> Ownership:
    """An owner hands its part over to another account, and has none any more."""
    _check_repository(repo)
    _check_account(to)
    require_reason(reason)
    if account == to:
        raise InvalidInput("It is the same account.", field="to", fix="name another one")
    new = Owner(to, require_env("kv").kv.now(), "transfer")

    def handed_over(known: Ownership) -> Ownership:
        if not known.has(account):
            raise NotPermitted(f"{account} is not an owner of {repo.url}.", account=account)
        left = tuple(owner for owner in known.owners if owner.account != account)
        return _added(msgspec.structs.replace(known, owners=left), new)

    details = {"from": account, "to": to}
    return await _change(
        repo, handed_over, action="owner transferred", by=f"user:{account}", reason=reason, details=details
    )


def _added(known: Ownership, owner: Owner) -> Ownership:
    """Once more changes nothing."""
    if known.has(owner.account):
        return known
    if len(known.owners) >= MOST_OWNERS:
        raise InvalidInput(
            f"{known.url} has {MOST_OWNERS} owners already.", field="account", fix="transfer one's part"
        )
    return msgspec.structs.replace(known, owners=(*known.owners, owner))


async def _read(repo: Identity) -> tuple[Ownership, int]:
    entry = await require_env("kv").kv.get(keys.owner(repo))
    if entry is None:
        return Ownership(repo.repo_key, repo.url), ABSENT
    return decode(entry, Ownership), entry.version


async def _change(
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
    kv = require_env("kv").kv
    entry_id = require_env("clock").clock.new_id()

    async def write() -> Ownership:
        known, version = await _read(repo)
        if await was_audited(entry_id):
            return known
        changed = change(known)
        audit = record_audit(action, repo.url, by=by, reason=reason, details=details, entry_id=entry_id)
        put = Put(keys.owner(repo), msgspec.json.encode(changed), version)
        await kv.commit([put, audit, *operations])
        return changed

    return await persist(write)


def _check_repository(repo: Identity) -> None:
    if repo.is_upload:
        raise InvalidInput(
            "An upload belongs to its namespace; there is nothing to prove.",
            field="repo_url",
            fix="name a repository",
        )


def _check_account(account: str) -> str:
    if not account.strip() or len(account) > MOST_ACCOUNT or has_control_characters(account):
        raise InvalidInput(
            "The account's name is not valid.", field="account", fix=f"use 1 to {MOST_ACCOUNT} characters"
        )
    return account
