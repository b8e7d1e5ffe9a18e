"""Access to the registry: admins see, preview and change who may use it and who may submit. By default a registry is
public, and everybody may submit."""

import asyncio
import secrets
from typing import TYPE_CHECKING

import msgspec

from vskill_client.wire.base import ActionRequest, NoParameters, Wire, iso_time
from vskill_core.errors import NotFound, PlatformError
from vskill_platform.actions.action import Reason, Services, action
from vskill_platform.actions.people.namespace_policy import ReachPreview, preview_directory
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import Access, OwnReview, RegistryMode, Submitters
from vskill_platform.ledger.kv.entries import Delete, Operation, Put
from vskill_platform.setting_issuers import Issuer, ShortName
from vskill_platform.sign_in.providers import list_issuers
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.people.credentials import hash_secret
from vskill_platform.store.people.directories import ScimToken, read_scim_token
from vskill_platform.store.people.namespaces import change_access, read_access, read_directory
from vskill_platform.store.people.sign_in_rule import SignInRule, github_rule, issuer_rule, read_mode

if TYPE_CHECKING:
    from vskill_platform.sign_in.oidc import Oidc

ACCESS = "/api/v1/admin/access"
SCIM = "/scim/v2"
SCIM_PREFIX = "vsks_"


class PreviewAccess(ActionRequest, frozen=True, kw_only=True):
    """A mode that nobody has set yet."""

    #: whom the registry would let in
    mode: RegistryMode


class ChangeAccess(ActionRequest, frozen=True, kw_only=True):
    """What is to change; what is left out stays."""

    #: whom the registry lets in: everybody (`public`) or only accounts (`internal`)
    mode: RegistryMode | None = None
    #: who may submit: `everybody`, accounts (`signed in`), or authors of the place's namespace (`members`)
    submitters: Submitters | None = None
    #: whether owners may let a namespace review itself: `allowed` or `forbidden`
    own_review: OwnReview | None = None
    #: why; kept in the audit
    reason: Reason


class IssuerState(Wire, frozen=True):
    """An issuer of OpenID Connect."""

    name: str
    #: who may sign in there, in words
    rule: str
    #: why nobody can sign in there now; null where it answers
    problem: str | None
    #: since when its directory has its SCIM token; null where it has none
    scim_since: str | None
    #: when the directory used it last, to the hour
    scim_last_used_at: str | None


class AccessView(Wire, frozen=True):
    """Whom the registry lets in, and who may submit."""

    mode: RegistryMode
    submitters: Submitters
    #: whether owners may let a namespace review itself
    own_review: OwnReview
    #: who may sign in with GitHub, in words; null where that is not set up
    github_sign_in: str | None
    #: the issuers that people sign in with, asked now
    issuers: tuple[IssuerState, ...]


class AccessPreview(Wire, frozen=True):
    """What a mode would hide and show."""

    mode: RegistryMode
    to: RegistryMode
    reach: ReachPreview
    #: who might sign in with GitHub, in words; null where that is not set up
    github_sign_in: str | None
    #: who might sign in with each issuer, in words
    issuers: tuple[str, ...]


class ScimIssuer(ActionRequest, frozen=True, kw_only=True):
    """An issuer of the sign-in file, and why its directory's access changes."""

    #: the issuer's short name
    issuer: ShortName
    #: why; kept in the audit
    reason: Reason


class MadeScimToken(Wire, frozen=True):
    """The only answer that ever holds the token."""

    issuer: str
    #: the directory's base address, or tenant address
    address: str
    #: what it sends as `Authorization: Bearer …`
    token: str

    def __repr__(self) -> str:
        return f"MadeScimToken(issuer={self.issuer!r})"


class RemovedScimToken(Wire, frozen=True):
    """The directory has no access any more."""

    issuer: str


async def show(services: Services, _request: NoParameters) -> AccessView:
    return await _view(services, (await read_access())[0])


async def preview(services: Services, request: PreviewAccess) -> AccessPreview:
    directory = await read_directory()
    access = msgspec.structs.replace(directory.access, mode=request.mode)
    after = msgspec.structs.replace(directory, access=access)
    reach = await preview_directory(directory, after)
    issuers = tuple(issuer_rule(one, request.mode).in_words for one in services.settings.issuers)
    github = _explain_github(services, request.mode)
    return AccessPreview(directory.access.mode, request.mode, reach, github, issuers)


async def change(services: Services, actor: Principal, request: ChangeAccess) -> AccessView:
    given = {"mode": request.mode, "submitters": request.submitters, "own_review": request.own_review}
    if set(given.values()) == {None}:
        return await _view(services, (await read_access())[0])

    def alter(known: Access) -> Access:
        mode, submitters = request.mode or known.mode, request.submitters or known.submitters
        review = request.own_review or known.own_review
        return msgspec.structs.replace(known, mode=mode, submitters=submitters, own_review=review)

    details = {field: value.value for field, value in given.items() if value is not None}
    note = AuditNote("registry access", "the registry", actor.actor, request.reason, details)
    return await _view(services, await change_access(alter, note))


async def make_scim_token(services: Services, actor: Principal, request: ScimIssuer) -> MadeScimToken:
    issuer, secret = _issuer_of(services, request.issuer), SCIM_PREFIX + secrets.token_urlsafe(32)
    now = services.kv.now()
    token = msgspec.json.encode(ScimToken(hash_secret(secret), now))
    await _let_speak(actor, request, issuer, Put(keys.scim(issuer.issuer), token), since=now)
    address = f"{services.settings.public_url.rstrip('/')}{SCIM}/{issuer.name}"
    return MadeScimToken(issuer.name, address, secret)


async def remove_scim_token(services: Services, actor: Principal, request: ScimIssuer) -> RemovedScimToken:
    issuer = _issuer_of(services, request.issuer)
    if await read_scim_token(issuer.issuer) is None:
        raise NotFound(f"The directory of {issuer.name} has no token.", issuer=issuer.name)
    await _let_speak(actor, request, issuer, Delete(keys.scim(issuer.issuer)), since=None)
    return RemovedScimToken(issuer.name)


async def _let_speak(
    actor: Principal, request: ScimIssuer, issuer: Issuer, write: Operation, *, since: int | None
) -> None:
    """Let the directory speak since then, or since it began to; None: not any more."""

    def alter(known: Access) -> Access:
        speaking = {name: began for name, began in known.directories.items() if name != issuer.issuer}
        if since is not None:
            speaking[issuer.issuer] = known.directories.get(issuer.issuer, since)
        return msgspec.structs.replace(known, directories=speaking)

    verb = f"scim token {'removed' if since is None else 'made'}"
    await change_access(alter, AuditNote(verb, issuer.name, actor.actor, request.reason), write)


def _issuer_of(services: Services, name: str) -> Issuer:
    for one in services.settings.issuers:
        if one.name == name:
            return one
    raise NotFound(f"The sign-in file names no issuer {name!r}.", issuer=name)


async def _view(services: Services, access: Access) -> AccessView:
    github = _explain_github(services, access.mode)
    issuers = await check_issuers(services, access.mode)
    return AccessView(access.mode, access.submitters, access.own_review, github, issuers)


def _explain_github(services: Services, mode: RegistryMode) -> str | None:
    settings = services.settings
    return github_rule(settings, mode).in_words if settings.github_client_id else None


async def read_github_rule(services: Services) -> SignInRule:
    return github_rule(services.settings, await read_mode())


async def check_issuers(services: Services, mode: RegistryMode | None = None) -> tuple[IssuerState, ...]:
    mode = mode or await read_mode()

    async def check(issuer: Issuer, provider: "Oidc") -> IssuerState:
        problem = None
        try:
            await provider.check()
        except PlatformError as error:
            problem = error.message
        token = await read_scim_token(issuer.issuer)
        since, used = (None, None) if token is None else (token.made_at, token.last_used_at)
        times = (None if one is None else iso_time(one) for one in (since, used))
        return IssuerState(issuer.name, issuer_rule(issuer, mode).in_words, problem, *times)

    settings = services.settings
    return tuple(await asyncio.gather(*map(check, settings.issuers, list_issuers(settings))))


SHOW_ACCESS = action(
    show,
    "access.show",
    ACCESS,
    right=Right.ADMIN,
    summary="Show whom the registry lets in and who may submit",
)
PREVIEW_ACCESS = action(
    preview,
    "access.preview",
    f"{ACCESS}/preview",
    method="GET",
    right=Right.ADMIN,
    summary="Show what another mode would hide and show",
    about="Nothing is changed.",
)
CHANGE_ACCESS = action(
    change,
    "access.change",
    ACCESS,
    right=Right.ADMIN,
    summary="Change whom the registry lets in, who may submit, and whether namespaces may review themselves",
    about="An `internal` registry answers accounts only, but for signing in, health and public keys.",
)
MAKE_SCIM_TOKEN = action(
    make_scim_token,
    "access.make-scim-token",
    f"{ACCESS}/scim/{{issuer}}",
    right=Right.ADMIN,
    errors=(NotFound,),
    status=201,
    summary="Make or replace the SCIM token of an issuer's directory; it is shown once",
    about="The token before it ends at once. From then on, what the directory says about its people has no age.",
)
REMOVE_SCIM_TOKEN = action(
    remove_scim_token,
    "access.remove-scim-token",
    f"{ACCESS}/scim/{{issuer}}/remove",
    right=Right.ADMIN,
    errors=(NotFound,),
    summary="Remove the SCIM token of an issuer's directory",
    about="Its people sign in again and again from then on, as before; whoever it has locked stays locked.",
)
