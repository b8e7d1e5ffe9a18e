"""Owners of repositories: claim a repository, prove the claim, transfer it, and list what one controls.

An account gets a token, commits it in a file on the default branch, and asks us to read the file: only somebody who
controls the repository can do that. Signing in with GitHub proves the repositories of that login without a file.
Submitting a repository first gives no right to it.
"""

import hashlib
import hmac
import secrets
from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, Wire, iso_time
from vskill_core.errors import (
    InvalidInput,
    NotPermitted,
    SourceGone,
    SourceUnavailable,
    Unsupported,
)
from vskill_core.identity import MAX_URL, Identity, parse_place
from vskill_platform.actions.action import AccountName, Allowance, Reason, Services, action
from vskill_platform.actions.principal import ActionObject, Principal, Right, audiences_of
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import NamespaceRole, may_read
from vskill_platform.intake.admission import refuse_closed
from vskill_platform.ledger.kv.entries import Delete
from vskill_platform.sources.contract import Watchable
from vskill_platform.store.people.accounts import find_enabled, read_user
from vskill_platform.store.people.github_accounts import PROOF_MS as SIGN_IN_MS
from vskill_platform.store.people.github_accounts import find_signed_in
from vskill_platform.store.people.namespaces import belonging_of, require_as_open
from vskill_platform.store.people.owners import (
    Owner,
    Ownership,
    Proof,
    change_ownership,
    list_owners,
    list_proofs,
    namespace_by_sign_in,
    ownership_of,
    put_proof,
    read_proof,
    role_in,
)

OWNERS = "/api/v1/owners"
#: Where the token stands in the repository: one to a line, so that several accounts can prove it side by side.
PROOF_FILE = ".well-known/vskill-owner.txt"
PROOF_MS = 7 * 24 * 3_600_000
TOKEN_PREFIX = "vskill-owner-"  # noqa: S105 - how every token begins

MOST_OWNERS = 20
#: What is read of the file.
_MOST_BYTES = 16 * 1024
_MOST_LINES = 200

RepositoryAddress = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_URL)]


class RepositoryRequest(ActionRequest, frozen=True, kw_only=True):
    """One repository."""

    #: the repository's address, such as https://github.com/acme/tools
    repo_url: RepositoryAddress


class TransferRepository(RepositoryRequest, frozen=True, kw_only=True):
    """Hand a repository over to another account."""

    #: the account that becomes an owner
    to: AccountName
    #: why; kept in the audit, and shown to the new owner
    reason: Reason
    #: the owner that hands over; needed only by the operator, who has no account
    account: AccountName | None = None


class ListOwned(ActionRequest, frozen=True, kw_only=True):
    """Whose repositories."""

    #: only what this account controls; the default is your own, and for the operator everybody's
    account: AccountName | None = None


class ClaimStarted(Wire, frozen=True):
    """What to commit. The token is shown once."""

    #: to be put on a line of its own
    token: str
    #: the file, at the default branch
    path: str
    url: str
    #: the claim must be checked before this time
    expires_at: str


class OwnerView(Wire, frozen=True):
    """An account that controls a repository."""

    account: str
    since: str
    #: `file` or `transfer`
    how: str
    #: the commit in which its token was found
    commit: str | None
    #: the account that handed it over
    handed_over_by: str | None


class OwnedRepository(Wire, frozen=True):
    """A repository and the accounts that have proved to control it, the first one first."""

    repo: str
    url: str
    owners: tuple[OwnerView, ...]


class PendingClaim(Wire, frozen=True):
    """A claim that is not proved yet."""

    url: str
    expires_at: str


class OwnedAnswer(Wire, frozen=True):
    """What an account controls."""

    repositories: tuple[OwnedRepository, ...]
    claims: tuple[PendingClaim, ...]
    #: the GitHub login whose repositories are the account's by signing in
    github_login: str | None
    #: signing in again before this time keeps them
    github_until: str | None


async def object_of(request: RepositoryRequest) -> ActionObject:
    return ActionObject(repository_of(request.repo_url))


# Claiming.


async def claim(services: Services, actor: Principal, request: RepositoryRequest) -> ClaimStarted:
    repo = repository_of(request.repo_url)
    token = TOKEN_PREFIX + secrets.token_urlsafe(32)
    proof = Proof(_account(actor), repo.repo_key, _hash(token), services.kv.now() + PROOF_MS, repo.url)
    await put_proof(repo, proof, PROOF_MS)
    return ClaimStarted(token, PROOF_FILE, repo.url, iso_time(proof.expires_at))


async def check(services: Services, actor: Principal, request: RepositoryRequest) -> OwnedRepository:
    repo, account = repository_of(request.repo_url), _account(actor)
    proof, version = await read_proof(account, repo)
    if proof is None:
        known = await ownership_of(repo)
        if known.has(account):
            return OwnedRepository.of(known)
        message = f"{account} has no claim on {repo.url}, or it has expired."
        raise NotPermitted(message, account=account, repo=repo.repo_key, fix="claim the repository first")
    commit = await _find_token(services, actor, repo, proof)
    owner = Owner(account, services.kv.now(), "file", commit)
    changed = await change_ownership(
        repo,
        lambda known: _with_owner(known, owner),
        action="owner added",
        by=actor.actor,
        reason=f"its token stands in {PROOF_FILE}",
        details={"account": account, "commit": commit},
        operations=(Delete(keys.owner_proof(repo.repo_key, account), version),),
    )
    return OwnedRepository.of(changed)


async def _find_token(services: Services, actor: Principal, repo: Identity, proof: Proof) -> str:
    """The commit whose file holds the token; NotPermitted says what is missing."""
    sources = services.sources
    if not isinstance(sources, Watchable):
        raise Unsupported("The configured source cannot look into repositories.")
    if not may_read((await belonging_of(repo)).audience, audiences_of(actor)):
        await refuse_closed(repo, lambda absent: sources.look(absent, (PROOF_FILE,)))
    look = await sources.look(repo, (PROOF_FILE,))
    await require_as_open(repo, look.identity)
    data = look.files.get(PROOF_FILE)
    where = f"{PROOF_FILE} at the default branch of {repo.url} (commit {look.commit[:12]})"
    if data is None:
        message = f"There is no file {where}."
        raise NotPermitted(message, path=PROOF_FILE, fix="commit it with the token, and check again")
    if not _holds(data, proof.token_hash):
        message = f"{where} does not hold the latest token of {proof.account}."
        raise NotPermitted(message, path=PROOF_FILE, fix="put it on a line of its own, and check again")
    return look.commit


def _holds(data: bytes, token_hash: str) -> bool:
    """Compare every line in constant time."""
    lines = data[:_MOST_BYTES].decode("utf-8", "replace").split("\n")[:_MOST_LINES]
    fits = [hmac.compare_digest(_hash(line.strip()), token_hash) for line in lines]
    return any(fits)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


# Handing over.


async def transfer(services: Services, actor: Principal, request: TransferRepository) -> OwnedRepository:
    repo, account = repository_of(request.repo_url), _owner_to_leave(actor, request)
    user = await find_enabled(request.to)
    if user is None:
        message = f"There is no account {request.to!r}."
        raise InvalidInput(message, field="to", fix="name an account of this registry")
    if user.name == account:
        raise InvalidInput(f"{account} is already an owner.", field="to", fix="name another account")
    by_sign_in = await find_signed_in(repo) == account
    new = Owner(user.name, services.kv.now(), "transfer", handed_over_by=account, reason=request.reason)

    def hand_over(known: Ownership) -> Ownership:
        if not known.has(account):
            raise _nothing_to_hand_over(account, repo, by_sign_in=by_sign_in)
        left = tuple(owner for owner in known.owners if owner.account != account)
        return _with_owner(msgspec.structs.replace(known, owners=left), new)

    changed = await change_ownership(
        repo,
        hand_over,
        action="owner transferred",
        by=actor.actor,
        reason=request.reason,
        details={"from": account, "to": user.name},
    )
    return OwnedRepository.of(changed)


def _owner_to_leave(actor: Principal, request: TransferRepository) -> str:
    """The account that hands over its part: the actor; the operator names one."""
    if request.account in (None, actor.account):
        return _account(actor, "account", "name the owner that hands over")
    if not actor.operator:
        message = "Only the account itself may hand its repositories over."
        raise NotPermitted(message, account=request.account)
    return request.account or ""


def _nothing_to_hand_over(account: str, repo: Identity, *, by_sign_in: bool) -> NotPermitted:
    if not by_sign_in:
        return NotPermitted(f"{account} is not an owner of {repo.url}.", account=account)
    message = f"{account} controls {repo.url} by signing in with GitHub, which cannot be handed over."
    fix = "transfer the repository on GitHub, or let the other account claim it"
    return NotPermitted(message, account=account, fix=fix)


def _with_owner(known: Ownership, owner: Owner) -> Ownership:
    if known.has(owner.account):
        return known
    if len(known.owners) >= MOST_OWNERS:
        message = f"{known.url} has {MOST_OWNERS} owners, which is the limit."
        raise InvalidInput(message, field="account", fix="let one of them hand over")
    return msgspec.structs.replace(known, owners=(*known.owners, owner))


# Listing.


class Owned(msgspec.Struct, frozen=True):
    """What an account controls, as records."""

    repositories: tuple[Ownership, ...]
    claims: tuple[Proof, ...] = ()
    github_login: str | None = None
    github_until: int | None = None
    #: It has lately signed in with a login that others proved first, or whose namespace is others'.
    is_login_of_others: bool = False


async def list_owned(services: Services, actor: Principal, request: ListOwned) -> OwnedAnswer:
    account = request.account or actor.account
    if account != actor.account and not actor.is_admin:
        raise NotPermitted("Only admins may list what another account controls.", account=account)
    owned = await read_owned(services, account)
    return OwnedAnswer.of(owned)


async def read_owned(services: Services, account: str | None) -> Owned:
    """The repositories that an account controls; None: every repository with an owner."""
    found = await list_owners(account)
    if account is None:
        return Owned(found)
    proofs = await list_proofs(account)
    user, _ = await read_user(account)
    name = await namespace_by_sign_in(account)
    until = 0 if user is None or user.github is None else user.github.verified_at + SIGN_IN_MS
    if (
        name is None
        or user is None
        or user.github is None
        or await role_in(account, name) is not NamespaceRole.OWNER
    ):
        is_others = until > services.kv.now()
        return Owned(found, proofs, is_login_of_others=is_others)
    return Owned(found, proofs, user.github.login, until)


def repository_of(address: str) -> Identity:
    repo = parse_place(address)
    if repo.is_upload:
        message = "What was uploaded or comes from an upstream has no repository to claim or hand over."
        raise InvalidInput(message, field="repo_url", fix="name a repository")
    return repo


def _account(actor: Principal, field: str = "account", fix: str = "add --as ACCOUNT") -> str:
    if actor.account is None:
        raise InvalidInput("Only an account can own a repository.", field=field, fix=fix)
    return actor.account


CLAIM = action(
    claim,
    "owner.claim",
    f"{OWNERS}/claim",
    right=Right.SIGNED_IN,
    allowance=Allowance.DISCOVERIES,
    status=201,
    summary="Claim a repository",
    about=f"The answer shows a token, once. Commit it to `{PROOF_FILE}` at the default branch within seven days, then "
    "check the claim. Nobody else can use the token, so it may be public. Another claim replaces the token.",
)
CHECK = action(
    check,
    "owner.check",
    f"{OWNERS}/check",
    right=Right.SIGNED_IN,
    errors=(NotPermitted, SourceGone, SourceUnavailable, Unsupported),
    allowance=Allowance.DISCOVERIES,
    summary="Check a claim: look for its token in the repository",
    about="If the token is there, the account becomes an owner. Otherwise the error says what is missing.",
)
TRANSFER = action(
    transfer,
    "owner.transfer",
    f"{OWNERS}/transfer",
    right=Right.MAINTAINER,
    acts_on=object_of,
    summary="Hand a repository over to another account",
    about="The account stops being an owner; other owners stay.",
)
LIST = action(
    list_owned,
    "owner.list",
    OWNERS,
    right=Right.SIGNED_IN,
    errors=(NotPermitted,),
    summary="List the repositories that an account controls",
)
