"""What signing in with GitHub proves: somebody who signs in as a login controls its repositories.

A login can be given up and taken by somebody else, so `github:login:{login}` permanently names the identity (the
server's host, and the number that it assigned) that proved it first. The proof is valid while that identity has
recently signed in under this login: once it gives the login up, the repositories belong to somebody else.
"""

from urllib.parse import urlsplit

import msgspec

from vskill_core.identity import GITHUB_HOST, Identity
from vskill_platform.domain import keys
from vskill_platform.ledger.kv.entries import Operation, Put
from vskill_platform.records import decode, read_record
from vskill_platform.settings import Settings
from vskill_platform.store.people.accounts import LinkedIdentity, User, read_user
from vskill_platform.store.people.identities import Arrival, account_of
from vskill_platform.worker_context import require_env

#: How long a sign-in proves control; signing in again renews it.
PROOF_MS = 30 * 86_400_000


class ProvedLogin(msgspec.Struct, frozen=True):
    """The record at `github:login:{login}`."""

    account: str
    #: GitHub's number of the account that proved it first.
    id: str
    at: int


def issuer_of(settings: Settings) -> str:
    """The host that people sign in at, as places name it."""
    return urlsplit(settings.github_url).netloc.lower().removesuffix(":443")


def _login_key(login: str, issuer: str) -> str:
    """GitHub compares logins without case. They are unique per server, so others than github.com prefix theirs."""
    return keys.github("login", (login if issuer == GITHUB_HOST else f"{issuer}/{login}").lower())


async def account_of_github(
    number: str, login: str, let_in_by: str | None = "", account: str | None = None
) -> User:
    """The account of an authenticated GitHub account; created at its first sign-in. `let_in_by` is the entry of the
    sign-in rule that admits it; None if none does. A named login means the identity that proved it first."""
    env = require_env("kv")
    link = LinkedIdentity(number, login, env.kv.now(), issuer_of(env.settings), let_in_by or "")
    entry = await env.kv.get(_login_key(login, link.issuer))
    is_others = entry is not None and decode(entry, ProvedLogin).id != number
    is_admitted = let_in_by is not None and not (is_others and let_in_by.startswith("login "))
    arrival = Arrival(link, "GitHub", number, f"github-{number}", is_admitted, account)

    async def bind(name: str) -> tuple[Operation, ...]:
        """Bind the login to the identity, unless it is bound already; it follows its identity to another account."""
        known, version = await read_record(_login_key(login, link.issuer), ProvedLogin)
        if known is not None and (known.id != number or known.account == name):
            return ()
        bound = msgspec.json.encode(ProvedLogin(name, number, link.verified_at))
        return (Put(_login_key(login, link.issuer), bound, version),)

    return await account_of(arrival, bind)


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
