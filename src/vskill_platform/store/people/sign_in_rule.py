"""Who may sign in with GitHub: everybody, those whom the operator named, or nobody.

Anybody can get a GitHub account, and in an internal registry every account may read. So such a registry names logins,
organisations or teams, or disables this sign-in. The rule also covers existing accounts: one that no admin vouches for
is admitted again only after it has signed in under the rule.
"""

import msgspec

from vskill_platform.domain.people.namespace import RegistryMode
from vskill_platform.settings import Settings
from vskill_platform.store.people.accounts import User
from vskill_platform.store.people.namespaces import read_access
from vskill_platform.worker_context import require_env

#: As a login: every account of the server.
ANY_LOGIN = "*"


class SignInRule(msgspec.Struct, frozen=True):
    """Whom the operator named, in lower case; GitHub compares names without it."""

    mode: RegistryMode
    logins: tuple[str, ...]
    organisations: tuple[str, ...]
    teams: tuple[str, ...]

    @property
    def lets_everybody_in(self) -> bool:
        is_unset = not (self.logins or self.organisations or self.teams)
        return ANY_LOGIN in self.logins or (is_unset and self.mode is RegistryMode.PUBLIC)

    @property
    def lets_nobody_in(self) -> bool:
        return not self.lets_everybody_in and not self.named

    @property
    def named(self) -> tuple[str, ...]:
        """All named entries, in the form of `GitHubLink.let_in_by`."""
        logins = (f"login {one}" for one in self.logins)
        organisations = (f"organisation {one}" for one in self.organisations)
        return (*logins, *organisations, *(f"team {one}" for one in self.teams))

    @property
    def in_words(self) -> str:
        """Who may sign in."""
        if self.lets_everybody_in:
            return "Everybody with a GitHub account may sign in."
        if not self.lets_nobody_in:
            return f"These may sign in with GitHub: {', '.join(self.named)}."
        return (
            "Nobody may sign in with GitHub: the registry is internal, and VSKILL_GITHUB_ALLOWED_LOGINS "
            "and VSKILL_GITHUB_ALLOWED_ORGANISATIONS name nobody."
        )

    def admits(self, user: User) -> bool:
        """Whether an account's sessions and tokens are valid."""
        if user.github is None or user.vouched_for or self.lets_everybody_in:
            return True
        return user.github.let_in_by in self.named


def rule_for(settings: Settings, mode: RegistryMode) -> SignInRule:
    logins = tuple(one.lower() for one in settings.github_allowed_logins)
    groups = tuple(one.lower() for one in settings.github_allowed_organisations)
    organisations = tuple(one for one in groups if "/" not in one)
    return SignInRule(mode, logins, organisations, tuple(one for one in groups if "/" in one))


async def read_rule() -> SignInRule:
    """The rule as it is now."""
    access, _ = await read_access()
    return rule_for(require_env("kv").settings, access.mode)


async def is_let_in(user: User) -> bool:
    """Whether an account may use the registry: it is not disabled, and signed in under the rule."""
    return not user.disabled and (user.vouched_for or (await read_rule()).admits(user))
