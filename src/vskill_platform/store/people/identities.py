"""Identities at other sign-ins, each of one account: `identity:{hash}` names it, for GitHub `github:id:{number}`.

An identity is the issuer and what the issuer calls somebody for ever. Nothing else finds an account, neither a name nor
an e-mail address: issuers give those to one person after another.
"""

import hashlib
from collections.abc import Awaitable, Callable
from typing import TypeGuard

import msgspec

from vskill_core.errors import InvalidInput, NotPermitted
from vskill_core.identity import GITHUB_HOST
from vskill_platform.domain import keys
from vskill_platform.ledger.kv.entries import ABSENT, Operation, Put
from vskill_platform.records import read_record
from vskill_platform.store.people import accounts
from vskill_platform.store.people.namespaces import read_access

MOST_SUBJECT = 255

#: What is written together with a sign-in, for the account of this name.
Beside = Callable[[str], Awaitable[tuple[Operation, ...]]]


class IdentityAccount(msgspec.Struct, frozen=True):
    """The record at `identity:{hash}` and `github:id:{number}`."""

    #: Empty: it was unlinked, and signs in nowhere until somebody who is signed in links it again.
    account: str


class Arrival(msgspec.Struct, frozen=True):
    """Somebody who has signed in at a provider."""

    identity: accounts.LinkedIdentity
    #: The provider, for people.
    title: str
    #: Tells accounts of one name apart.
    suffix: str
    #: The name where theirs cannot be one of an account.
    fallback: str
    #: Whether the sign-in rule admits them; an account for which an admin vouches may sign in without.
    is_admitted: bool
    #: The account that was signed in already, which the identity becomes one of.
    account: str | None = None


async def account_of(arrival: Arrival, beside: Beside) -> accounts.User:
    """The account of an identity; created at its first sign-in, unless it is linked to one that is signed in."""
    for name in names_for(arrival):
        account = (await _find_bound(arrival))[0] or arrival.account
        await _require_let_in(arrival, account)
        if account is not None:
            return await _renew(arrival, account, beside)
        try:
            return await _create(name, arrival, beside)
        except accounts.NameTaken:
            # Somebody else has the name, or the same person's other browser was first.
            continue
    login = arrival.identity.login
    message = f"The names that an account of the login {login} could have are taken; ask an admin."
    raise NotPermitted(message, login=login)


def identity_key(identity: accounts.LinkedIdentity) -> str:
    if not identity.is_github:
        return keys.identity(hash_identity(identity.issuer, identity.id))
    # Numbers are unique per server only, so other servers than github.com prefix theirs.
    is_public = identity.issuer == GITHUB_HOST
    return keys.github("id", identity.id if is_public else f"{identity.issuer}/{identity.id}")


def is_subject(subject: object) -> TypeGuard[str]:
    """Whether an issuer can call somebody so."""
    return isinstance(subject, str) and 1 <= len(subject) <= MOST_SUBJECT and subject.isprintable()


def login_of(text: str) -> str:
    """A name for an account, of what somebody is called elsewhere; it may be no valid one."""
    letters = (
        one if one.isascii() and one.isalnum() else " " for one in text[:200].partition("@")[0].lower()
    )
    return "-".join("".join(letters).split())[: accounts.MOST_NAME].rstrip("-") or "unnamed"


def name_identity(identity: accounts.LinkedIdentity) -> str:
    return hash_identity(identity.issuer, identity.id)[:16]


def hash_identity(issuer: str, subject: str) -> str:
    return hashlib.sha256(msgspec.json.encode([issuer, subject])).hexdigest()


def names_for(arrival: Arrival) -> tuple[str, ...]:
    """The login, and the login with the suffix behind it."""
    wanted = arrival.identity.login.lower()
    try:
        accounts.check_name(wanted)
    except InvalidInput:
        return (arrival.fallback,)
    return wanted, f"{wanted[: accounts.MOST_NAME - len(arrival.suffix) - 1].rstrip('-')}-{arrival.suffix}"


async def find_account(identity: accounts.LinkedIdentity) -> tuple[str | None, int]:
    """Whose an identity is, empty where it was unlinked, and the version of its record."""
    found, version = await read_record(identity_key(identity), IdentityAccount)
    return (None if found is None else found.account), version


async def _find_bound(arrival: Arrival) -> tuple[str | None, int]:
    """The account of an identity. One that was unlinked has none, and neither makes nor joins one by itself."""
    bound, version = await find_account(arrival.identity)
    if bound == "" and arrival.account is None:
        login = arrival.identity.login
        message = f"{login} at {arrival.title} was unlinked from its account, and signs in nowhere."
        fix = "sign in another way and link it on the page of your account, or ask an admin"
        raise NotPermitted(message, login=login, fix=fix)
    return bound or None, version


async def _require_let_in(arrival: Arrival, account: str | None) -> None:
    if arrival.is_admitted:
        return
    user = None if account is None else (await accounts.read_user(account))[0]
    is_vouched_for = user is not None and (
        user.vouched_for or user.kept_by((await read_access())[0].directories)
    )
    if not is_vouched_for:
        login = arrival.identity.login
        named = "only those whom this registry's operator named"
        message = f"{arrival.title} lets in {named}, and {login} is not one of them."
        raise NotPermitted(message, login=login, fix="ask an admin of the registry for an account")


async def _renew(arrival: Arrival, account: str, beside: Beside) -> accounts.User:
    identity = arrival.identity
    if (await accounts.get_user(account)).disabled:
        raise NotPermitted(f"The account {account} is disabled; ask an admin.", account=account)

    async def renew(known: accounts.User) -> accounts.UserChange:
        (bound, version), wanted = await _find_bound(arrival), arrival.account or account
        if bound not in (None, wanted):
            message = f"{identity.login} at {arrival.title} signs in as another account."
            raise NotPermitted(message, fix="sign out first to use that account")
        put = () if bound is not None else (put_identity(identity, account, version),)
        return accounts.UserChange(accounts.with_identity(known, identity), (*put, *await beside(account)))

    return await accounts.change_user(
        account,
        renew,
        action="github sign-in" if identity.is_github else "single sign-on",
        by=f"user:{account}",
        reason=f"signed in as {identity.login}",
        details={"login": identity.login, "id": identity.id, "issuer": identity.issuer},
    )


async def _create(name: str, arrival: Arrival, beside: Beside) -> accounts.User:
    async def bring() -> tuple[Operation, ...]:
        return put_identity(arrival.identity, name), *await beside(name)

    return await accounts.create_user(
        name,
        accounts.Role.AUTHOR,
        by=f"user:{name}",
        reason=f"signed in with {arrival.title} as {arrival.identity.login}",
        identity=arrival.identity,
        operations=bring,
    )


def put_identity(identity: accounts.LinkedIdentity, account: str, version: int = ABSENT) -> Put:
    return Put(identity_key(identity), msgspec.json.encode(IdentityAccount(account)), version)
