"""Whom each provider lets in: everybody, those whom the operator named, or nobody.

Anybody can get a GitHub account, and in an internal registry every account may read. So such a registry names logins,
organisations, teams, groups or domains, or disables the sign-in. The rule also covers existing accounts: one that no
admin vouches for is admitted again only after it has signed in under the rule.
"""

import msgspec

from vskill_platform.domain.people.namespace import Access, RegistryMode
from vskill_platform.setting_issuers import Issuer
from vskill_platform.settings import Settings
from vskill_platform.store.people.accounts import LinkedIdentity, Role, User
from vskill_platform.store.people.namespaces import read_access
from vskill_platform.worker_context import require_env

#: How long what an issuer said at a sign-in counts: for sessions and roles, and for what tokens read.
DAY_MS = 86_400_000
READ_MS = 7 * DAY_MS


class Standing(msgspec.Struct, frozen=True):
    """What an account counts for now. It is never stored: the groups that give a role are the issuer's."""

    name: str
    #: Its own, or a higher one that a group gives.
    role: Role
    #: As teams name them.
    groups: frozenset[str] = frozenset()
    #: Its last sign-in is too old for anything but reading.
    only_reads: bool = False

    @property
    def reads_all(self) -> bool:
        return self.role is not Role.AUTHOR

    @property
    def operates(self) -> bool:
        return self.role is Role.ADMIN


class SignInRule(msgspec.Struct, frozen=True):
    """Whom the operator named at one provider."""

    title: str
    mode: RegistryMode
    #: In the form of `LinkedIdentity.let_in_by`, such as `login octo-cat`; `*` is everybody.
    named: tuple[str, ...]
    #: What names people.
    settings: str

    @property
    def lets_everybody_in(self) -> bool:
        is_open = not self.named and self.mode is RegistryMode.PUBLIC
        return is_open or any(one.partition(" ")[2] == "*" for one in self.named)

    @property
    def lets_nobody_in(self) -> bool:
        return not self.lets_everybody_in and not self.named

    @property
    def in_words(self) -> str:
        if self.lets_everybody_in:
            return f"Everybody with an account at {self.title} may sign in."
        if not self.lets_nobody_in:
            return f"These may sign in with {self.title}: {', '.join(self.named)}."
        return f"Nobody may sign in with {self.title}: the registry is internal, and {self.settings} name nobody."


def github_rule(settings: Settings, mode: RegistryMode) -> SignInRule:
    """GitHub compares names without case."""
    logins = (f"login {one.lower()}" for one in settings.github_allowed_logins)
    groups = [one.lower() for one in settings.github_allowed_organisations]
    organisations = (f"organisation {one}" for one in groups if "/" not in one)
    named = (*logins, *organisations, *(f"team {one}" for one in groups if "/" in one))
    where = "VSKILL_GITHUB_ALLOWED_LOGINS and VSKILL_GITHUB_ALLOWED_ORGANISATIONS"
    return SignInRule("GitHub", mode, named, where)


def issuer_rule(issuer: Issuer, mode: RegistryMode) -> SignInRule:
    groups = (f"group {one}" for one in issuer.allowed_groups)
    domains = (f"domain {one.lower()}" for one in issuer.allowed_domains)
    return SignInRule(issuer.shown, mode, (*groups, *domains), "allowed_groups and allowed_domains")


def provider_of(settings: Settings, link: LinkedIdentity) -> str | None:
    if link.is_github:
        return "github" if settings.github_client_id else None
    return next((one.name for one in settings.issuers if one.issuer == link.issuer), None)


def has_way_in(settings: Settings, access: Access, user: User) -> bool:
    """Whether somebody can sign in as this account, however long ago that was."""
    is_let_in = user.vouched_for or user.kept_by(access.directories)
    links = user.linked if is_let_in else _admitted(settings, access.mode, user)
    return user.password is not None or any(provider_of(settings, one) for one in links)


async def read_mode() -> RegistryMode:
    access, _ = await read_access()
    return access.mode


async def standing_of(user: User, *, by_token: bool = False) -> Standing | None:
    """What an account counts for now; None if it may not use the registry."""
    env = require_env("kv")
    # It matters only where nobody vouches, or a directory does.
    access = Access() if user.vouched_for and not user.identities else (await read_access())[0]
    return standing_in(env.settings, access, user, env.kv.now(), by_token=by_token)


def standing_in(
    settings: Settings, access: Access, user: User, now: int, *, by_token: bool
) -> Standing | None:
    """The same, without a look at the store. Somebody for whom only an issuer speaks must have signed in there lately:
    within a day for everything, within a week for reading by a token. A password exempts from that, and GitHub where
    its rule admits the person now. What a directory says counts until it says otherwise."""
    lasts_ms = READ_MS if by_token else DAY_MS
    issuers = {one.issuer: one for one in settings.issuers}
    admitted = _admitted(settings, access.mode, user)
    directories = {name: since for name, since in access.directories.items() if name in issuers}
    is_kept = user.kept_by(directories)
    needs_claims = user.needs_claims and not is_kept and not any(one.is_github for one in admitted)
    speaks = user.identities if user.vouched_for else admitted
    age = now - max((one.verified_at for one in speaks), default=now)
    is_admitted = is_kept or user.vouched_for or bool(admitted)
    if user.disabled or not is_admitted or (needs_claims and age > lasts_ms):
        return None
    role, groups = user.role, set[str]()
    for link in user.identities:
        issuer, entry = issuers.get(link.issuer), link.said_by(directories)
        sent = None if entry is None else entry.groups
        said = link.groups if sent is None else sent
        if issuer is None or (sent is None and now - link.verified_at > lasts_ms):
            continue
        groups |= {issuer.name_of(one) for one in said}
        if sent is not None or now - link.verified_at <= DAY_MS:
            role = max(role, _role_by(issuer, said), key=tuple(Role).index)
    return Standing(user.name, role, frozenset(groups), needs_claims and age > DAY_MS)


def _role_by(issuer: Issuer, groups: tuple[str, ...]) -> Role:
    if not set(issuer.admin_groups).isdisjoint(groups):
        return Role.ADMIN
    return Role.AUTHOR if set(issuer.reviewer_groups).isdisjoint(groups) else Role.REVIEWER


def _admitted(settings: Settings, mode: RegistryMode, user: User) -> list[LinkedIdentity]:
    """The identities that the rules of today admit, however long ago they signed in."""
    rules = {one.issuer: issuer_rule(one, mode) for one in settings.issuers}
    found = []
    for link in user.linked:
        rule = github_rule(settings, mode) if link.is_github else rules.get(link.issuer)
        if rule is not None and (rule.lets_everybody_in or link.let_in_by in rule.named):
            found.append(link)
    return found
