"""Accounts that sign in with GitHub, and what that proves: whoever signs in as a login controls its repositories.

GitHub's number is the identity, kept at `github:id:{number}`. A login can be given up and taken by somebody else, so
`github:login:{login}` names the one who proved it last, and the proof is good for a limited time.
"""

import msgspec

from vskill_platform.domain import keys
from vskill_platform.domain.errors import InvalidInput, NotPermitted
from vskill_platform.domain.identity import Identity
from vskill_platform.kv.entries import ABSENT, Put
from vskill_platform.records import decode
from vskill_platform.store.accounts import (
    MOST_NAME,
    GitHubLink,
    Role,
    User,
    UserChange,
    change_user,
    check_name,
    create_user,
    read_user,
)
from vskill_platform.worker_context import require_env

GITHUB_HOST = "github.com"
#: How long a sign-in proves control; signing in again renews it.
PROOF_MS = 30 * 86_400_000


class GitHubAccount(msgspec.Struct, frozen=True):
    """The record at `github:id:{number}`."""

    account: str


class ProvedLogin(msgspec.Struct, frozen=True):
    """The record at `github:login:{login}`."""

    account: str
    #: GitHub's number of whoever proved it.
    id: str
    at: int


async def account_of_github(number: str, login: str) -> User:
    """The account of a GitHub account that has just proved who it is; made at its first time."""
    link = GitHubLink(number, login, require_env("kv").kv.now())
    entry = await require_env("kv").kv.get(keys.github_id(number))
    if entry is None:
        return await _create(link)
    account = decode(entry, GitHubAccount).account
    user, _ = await read_user(account)
    if user is None or user.disabled:
        raise NotPermitted(f"The account {account} is disabled; ask an admin.", account=account)

    async def renew(known: User) -> UserChange:
        return UserChange(msgspec.structs.replace(known, github=link), (_proof(account, link),))

    return await change_user(
        account,
        renew,
        action="github sign-in",
        by=f"user:{account}",
        reason=f"signed in as {login}",
        details={"login": login, "id": number},
    )


async def controls_by_sign_in(account: str, repo: Identity) -> bool:
    """Whether this account has lately signed in as the owner of a repository on GitHub, and nobody else since."""
    return await find_signed_in(repo) == account


async def find_signed_in(repo: Identity) -> str | None:
    """The account that has lately signed in as the owner of a repository on GitHub, or None."""
    if repo.host != GITHUB_HOST:
        return None
    kv = require_env("kv").kv
    entry = await kv.get(keys.github_login(repo.owner))
    proved = None if entry is None else decode(entry, ProvedLogin)
    return proved.account if proved is not None and kv.now() < proved.at + PROOF_MS else None


async def _create(link: GitHubLink) -> User:
    """Under its login; a name that is taken is never taken over, the newcomer's has the number behind it."""
    name = await _free_name(link)
    writes = (
        Put(keys.github_id(link.id), msgspec.json.encode(GitHubAccount(name)), ABSENT),
        _proof(name, link),
    )
    reason = f"signed in with GitHub as {link.login}"
    return await create_user(
        name, Role.AUTHOR, by=f"user:{name}", reason=reason, github=link, operations=writes
    )


async def _free_name(link: GitHubLink) -> str:
    wanted = link.login.lower()
    try:
        check_name(wanted)
    except InvalidInput:
        return f"github-{link.id}"
    taken = (await read_user(wanted))[0] is not None
    numbered = f"{wanted[: MOST_NAME - len(link.id) - 1].rstrip('-')}-{link.id}"
    return numbered if taken else wanted


def _proof(account: str, link: GitHubLink) -> Put:
    proved = ProvedLogin(account, link.id, link.verified_at)
    return Put(keys.github_login(link.login), msgspec.json.encode(proved))
