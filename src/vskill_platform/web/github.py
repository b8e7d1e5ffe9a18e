"""Talking to GitHub: where a browser signs in, who a token belongs to, and which organisations and teams let them in.

Its addresses are settings, so that an enterprise server or a test server can replace it. Its answers are foreign input:
only the number, the login and memberships are used, and all are checked.
"""

import asyncio
import base64
import hashlib
import ssl
from typing import Any, TypeVar
from urllib.parse import urlencode

# Loaded here, because httpx2 would load it at its first use, on the event loop.
import httpcore2  # noqa: F401
import httpx2
import msgspec

from vskill_core.errors import NotFound, NotSignedIn, SourceUnavailable
from vskill_platform.settings import Settings
from vskill_platform.store.people.accounts import User
from vskill_platform.store.people.github_accounts import account_of_github
from vskill_platform.store.people.sign_in_rule import SignInRule, read_rule

T = TypeVar("T")

TIMEOUT_S = 10.0
MOST_ANSWER = 200_000
CALLBACK = "/signin/github/callback"

_LOGIN_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


class GitHubUser(msgspec.Struct, frozen=True):
    """Who it is, by GitHub's word."""

    id: int
    login: str


class _Granted(msgspec.Struct, frozen=True):
    access_token: str = ""


class _Membership(msgspec.Struct, frozen=True):
    #: `active`, or `pending` while it is only an invitation
    state: str = ""


class _Checked(msgspec.Struct, frozen=True):
    user: GitHubUser | None = None


def require_github(settings: Settings) -> None:
    """NotFound if GitHub sign-in is not configured."""
    if not settings.github_client_id:
        raise NotFound("Signing in with GitHub is not set up here.")


def authorize_url(settings: Settings, state: str, verifier: str) -> str:
    """The URL for the browser. It requests only the name, and memberships if the sign-in rule needs them."""
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    asked = {
        "client_id": settings.github_client_id,
        "redirect_uri": callback_url(settings),
        "scope": "read:org" if settings.github_allowed_organisations else "",
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    return f"{settings.github_url.rstrip('/')}/login/oauth/authorize?{urlencode(asked)}"


def _api_address(settings: Settings) -> str:
    address = settings.github_url.rstrip("/")
    return "https://api.github.com" if address == "https://github.com" else f"{address}/api/v3"


def callback_url(settings: Settings) -> str:
    return settings.public_url.rstrip("/") + CALLBACK


async def token_of_code(settings: Settings, code: str, verifier: str) -> str:
    """Exchange the code for GitHub's token; NotSignedIn if the code is invalid."""
    form = {
        "client_id": settings.github_client_id,
        "client_secret": settings.github_client_secret,
        "code": code,
        "redirect_uri": callback_url(settings),
        "code_verifier": verifier,
    }
    url = f"{settings.github_url.rstrip('/')}/login/oauth/access_token"
    granted = await _ask("POST", url, _Granted, data=form)
    if granted is None or not granted.access_token:
        raise NotSignedIn("GitHub did not accept the sign-in; start again.")
    return granted.access_token


async def sign_in_with_token(settings: Settings, token: str) -> User:
    """The account of the token's owner, created at the first sign-in; NotPermitted if the rule does not admit them."""
    person = await _user_of_token(settings, token)
    let_in_by = await _find_admission(settings, await read_rule(), person, token)
    return await account_of_github(str(person.id), person.login, let_in_by)


async def _find_admission(settings: Settings, rule: SignInRule, person: GitHubUser, token: str) -> str | None:
    """The rule's entry that admits this person; empty if everybody is admitted, None if no entry does. GitHub is asked
    about memberships only if the login is not enough."""
    login = person.login.lower()
    if rule.lets_everybody_in:
        return ""
    if login in rule.logins:
        return f"login {login}"
    paths = {f"organisation {one}": f"/user/memberships/orgs/{one}" for one in rule.organisations}
    for team in rule.teams:
        organisation, _, name = team.partition("/")
        paths[f"team {team}"] = f"/orgs/{organisation}/teams/{name}/memberships/{person.login}"
    for named, path in paths.items():
        url = _api_address(settings) + path
        membership = await _ask("GET", url, _Membership, token=token)
        if membership is not None and membership.state == "active":
            return named
    return None


async def _user_of_token(settings: Settings, token: str) -> GitHubUser:
    """The owner of a token that was issued to our own app: another site's token must not sign in here."""
    url = f"{_api_address(settings)}/applications/{settings.github_client_id}/token"
    basic = httpx2.BasicAuth(settings.github_client_id, settings.github_client_secret)
    checked = await _ask("POST", url, _Checked, json={"access_token": token}, auth=basic)
    user = None if checked is None else checked.user
    is_person = user is not None and user.id >= 1 and 1 <= len(user.login) <= 100
    if user is None or not is_person or not _LOGIN_CHARACTERS.issuperset(user.login):
        raise NotSignedIn("GitHub says that this token does not belong to this registry's app.")
    return user


async def _ask(method: str, url: str, kind: type[T], token: str = "", **options: Any) -> T | None:
    """The answer's JSON; None if GitHub refuses, SourceUnavailable if it gives no valid answer."""
    trust = await asyncio.to_thread(ssl.create_default_context) if url.startswith("https:") else False
    headers = {"accept": "application/json", "user-agent": "vskill-platform"}
    if token:
        headers["authorization"] = f"Bearer {token}"
    try:
        async with httpx2.AsyncClient(verify=trust, timeout=TIMEOUT_S, trust_env=False) as client:
            answer = await client.request(method, url, headers=headers, **options)
    except httpx2.HTTPError as error:
        raise SourceUnavailable(
            f"GitHub cannot be reached: {type(error).__name__}.", host="github"
        ) from error
    if answer.status_code >= 500 or answer.status_code == 429:
        raise SourceUnavailable(f"GitHub answered {answer.status_code}.", host="github")
    if answer.status_code >= 300 or len(answer.content) > MOST_ANSWER:
        return None
    try:
        return msgspec.json.decode(answer.content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
