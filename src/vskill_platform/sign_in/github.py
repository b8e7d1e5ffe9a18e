"""Signing in with GitHub: who a token belongs to, and which organisations and teams let them in.

Its addresses are settings, so that an enterprise server or a test server can replace it. Its answers are foreign input:
only the number, the login and memberships are used, and all are checked.
"""

from urllib.parse import urlencode

import msgspec

from vskill_core.errors import NotFound, NotSignedIn
from vskill_platform.settings import Settings
from vskill_platform.sign_in.contract import Journey, ask, basic_auth, callback_url
from vskill_platform.store.people.accounts import User
from vskill_platform.store.people.github_accounts import account_of_github
from vskill_platform.store.people.sign_in_rule import SignInRule, github_rule, read_mode

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


class GitHub:
    """GitHub, or a server of one's own."""

    name = "github"
    title = "GitHub"

    def __init__(self, settings: Settings) -> None:
        if not settings.github_client_id:
            raise NotFound("Signing in with GitHub is not set up here.")
        self._settings = settings
        self._address = settings.github_url.rstrip("/")
        is_public = self._address == "https://github.com"
        self._api = "https://api.github.com" if is_public else f"{self._address}/api/v3"

    async def authorize_url(self, journey: Journey) -> str:
        """It requests only the name, and memberships if the sign-in rule needs them."""
        asked = {
            "client_id": self._settings.github_client_id,
            "redirect_uri": callback_url(self._settings, self.name),
            "scope": "read:org" if self._settings.github_allowed_organisations else "",
            "state": journey.state,
            "code_challenge": journey.challenge,
            "code_challenge_method": "S256",
        }
        return f"{self._address}/login/oauth/authorize?{urlencode(asked)}"

    async def sign_in(self, code: str, journey: Journey) -> User:
        form = {
            "client_id": self._settings.github_client_id,
            "client_secret": self._settings.github_client_secret,
            "code": code,
            "redirect_uri": callback_url(self._settings, self.name),
            "code_verifier": journey.verifier,
        }
        url = f"{self._address}/login/oauth/access_token"
        granted = await ask(self, url, _Granted, trusted=self._address, form=form)
        if granted is None or not granted.access_token:
            raise NotSignedIn("GitHub did not accept the sign-in; start again.")
        return await self.sign_in_with_token(granted.access_token, journey.account)

    async def sign_out_url(self) -> str:
        return ""

    async def sign_in_with_token(self, token: str, account: str | None = None) -> User:
        """The account of the token's owner, created at the first sign-in; NotPermitted if the rule does not admit
        them."""
        person = await self._user_of_token(token)
        let_in_by = await self._find_admission(github_rule(self._settings, await read_mode()), person, token)
        return await account_of_github(str(person.id), person.login, let_in_by, account)

    async def _find_admission(self, rule: SignInRule, person: GitHubUser, token: str) -> str | None:
        """The rule's entry that admits this person; empty if everybody is admitted, None if no entry does. GitHub is
        asked about memberships only if the login is not enough."""
        if rule.lets_everybody_in:
            return ""
        for named in rule.named:
            kind, _, value = named.partition(" ")
            if kind == "login":
                if value == person.login.lower():
                    return named
                continue
            organisation, _, team = value.partition("/")
            path = f"/orgs/{organisation}/teams/{team}/memberships/{person.login}"
            url = self._api + (path if team else f"/user/memberships/orgs/{organisation}")
            membership = await ask(
                self, url, _Membership, trusted=self._address, authorization=f"Bearer {token}"
            )
            if membership is not None and membership.state == "active":
                return named
        return None

    async def _user_of_token(self, token: str) -> GitHubUser:
        """The owner of a token that was issued to our own app: another site's token must not sign in here."""
        client_id, secret = self._settings.github_client_id, self._settings.github_client_secret
        url = f"{self._api}/applications/{client_id}/token"
        sent = {"access_token": token}
        checked = await ask(
            self, url, _Checked, trusted=self._address, json=sent, authorization=basic_auth(client_id, secret)
        )
        user = None if checked is None else checked.user
        is_person = user is not None and user.id >= 1 and 1 <= len(user.login) <= 100
        if user is None or not is_person or not _LOGIN_CHARACTERS.issuperset(user.login):
            raise NotSignedIn("GitHub says that this token does not belong to this registry's app.")
        return user
