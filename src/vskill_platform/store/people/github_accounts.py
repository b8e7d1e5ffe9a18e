"""Accounts that sign in with GitHub, and what that proves: somebody who signs in as a login controls its repositories.

An identity is the issuer (the server's host) and the number that it assigned; its account is at `github:id:{number}`.
A login can be given up and taken by somebody else, so `github:login:{login}` permanently names the identity that proved
it first. The proof is valid while that identity has recently signed in under this login: once it gives the login up,
the repositories belong to somebody else.
"""

from urllib.parse import urlsplit

import msgspec

from vskill_core.errors import InvalidInput, NotPermitted
from vskill_core.identity import GITHUB_HOST, Identity
from vskill_platform.domain import keys
from vskill_platform.ledger.kv.entries import ABSENT, Operation, Put
from vskill_platform.records import decode
from vskill_platform.settings import Settings
from vskill_platform.store.people.accounts import (
    MOST_NAME,
    GitHubLink,
    NameTaken,
    Role,
    User,
    UserChange,
    change_user,
    check_name,
    create_user,
    read_user,
)
from vskill_platform.worker_context import require_env

#: How long a sign-in proves control; signing in again renews it.
PROOF_MS = 30 * 86_400_000


class GitHubAccount(msgspec.Struct, frozen=True):
    """The record at `github:id:{number}`."""

    account: str


class ProvedLogin(msgspec.Struct, frozen=True):
    """The record at `github:login:{login}`."""

    account: str
    #: GitHub's number of the account that proved it first.
    id: str
    at: int


def issuer_of(settings: Settings) -> str:
    """The host that people sign in at, as places name it."""
    return urlsplit(settings.github_url).netloc.lower().removesuffix(":443")


def _id_key(link: GitHubLink) -> str:
    return keys.github("id", _at(link.issuer, link.id))


def _login_key(login: str, issuer: str) -> str:
    """GitHub compares logins without case."""
    return keys.github("login", _at(issuer, login).lower())


def _at(issuer: str, name: str) -> str:
    """Numbers and logins are unique per issuer only, so other servers than github.com prefix theirs."""
    return name if issuer == GITHUB_HOST else f"{issuer}/{name}"


async def account_of_github(number: str, login: str, let_in_by: str | None = "") -> User:
    """The account of an authenticated GitHub account; created at its first sign-in. `let_in_by` is the entry of the
    sign-in rule that admits it; None if none does: then only an account for which an admin vouches may sign in."""
    env = require_env("kv")
    link = GitHubLink(number, login, env.kv.now(), issuer_of(env.settings), let_in_by or "")
    for name in _names_for(link):
        account = await _find_account(link)
        await _require_let_in(link, account, is_named=let_in_by is not None)
        if account is not None:
            return await _renew(account, link)
        try:
            return await _create(name, link)
        except NameTaken:
            # Somebody else has the name, or the same person's other browser was first.
            continue
    message = f"The names that an account of the login {login} could have are taken; ask an admin."
    raise NotPermitted(message, login=login)


async def _require_let_in(link: GitHubLink, account: str | None, *, is_named: bool) -> None:
    """Raise NotPermitted if the rule does not admit this identity. A named login means the identity that proved it
    first."""
    entry = await require_env("kv").kv.get(_login_key(link.login, link.issuer))
    is_others = entry is not None and decode(entry, ProvedLogin).id != link.id
    if is_named and not (is_others and link.let_in_by.startswith("login ")):
        return
    user = None if account is None else (await read_user(account))[0]
    if user is None or not user.vouched_for:
        message = f"GitHub lets in only those whom this registry's operator named, and {link.login} is not one of them."
        raise NotPermitted(message, login=link.login, fix="ask an admin of the registry for an account")


def _names_for(link: GitHubLink) -> tuple[str, ...]:
    """The login, and the login with the number behind it."""
    wanted = link.login.lower()
    try:
        check_name(wanted)
    except InvalidInput:
        return (f"github-{link.id}",)
    return wanted, f"{wanted[: MOST_NAME - len(link.id) - 1].rstrip('-')}-{link.id}"


async def _find_account(link: GitHubLink) -> str | None:
    entry = await require_env("kv").kv.get(_id_key(link))
    return None if entry is None else decode(entry, GitHubAccount).account


async def _renew(account: str, link: GitHubLink) -> User:
    user, _ = await read_user(account)
    if user is None or user.disabled:
        raise NotPermitted(f"The account {account} is disabled; ask an admin.", account=account)

    async def renew(known: User) -> UserChange:
        return UserChange(msgspec.structs.replace(known, github=link), await _bind(account, link))

    return await change_user(
        account,
        renew,
        action="github sign-in",
        by=f"user:{account}",
        reason=f"signed in as {link.login}",
        details={"login": link.login, "id": link.id},
    )


async def _create(name: str, link: GitHubLink) -> User:
    async def bring() -> tuple[Operation, ...]:
        known = Put(_id_key(link), msgspec.json.encode(GitHubAccount(name)), ABSENT)
        return known, *await _bind(name, link)

    reason = f"signed in with GitHub as {link.login}"
    return await create_user(
        name, Role.AUTHOR, by=f"user:{name}", reason=reason, github=link, operations=bring
    )


async def _bind(account: str, link: GitHubLink) -> tuple[Operation, ...]:
    """The operations that bind a login to the identity; none if it is bound already."""
    key = _login_key(link.login, link.issuer)
    if await require_env("kv").kv.get(key) is not None:
        return ()
    return (Put(key, msgspec.json.encode(ProvedLogin(account, link.id, link.verified_at)), ABSENT),)


async def find_signed_in(repo: Identity) -> str | None:
    """The account whose identity first proved the owner of a repository and signed in recently, or None."""
    env = require_env("kv")
    issuer = issuer_of(env.settings)
    if repo.host != issuer:
        return None
    entry = await env.kv.get(_login_key(repo.owner, issuer))
    if entry is None:
        return None
    proved = decode(entry, ProvedLogin)
    user, _ = await read_user(proved.account)
    link = None if user is None else user.github
    if link is None or (link.issuer, link.id, link.login.lower()) != (issuer, proved.id, repo.owner.lower()):
        return None
    return proved.account if env.kv.now() < link.verified_at + PROOF_MS else None
