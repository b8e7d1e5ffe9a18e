"""Access to the registry: admins see, preview and change who may use it and who may submit. By default a registry is
public, and everybody may submit."""

import msgspec

from vskill_client.wire.base import ActionRequest, NoParameters, Wire
from vskill_platform.actions.action import Reason, Services, action
from vskill_platform.actions.people.namespace_policy import ReachPreview, preview_directory
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.domain.people.namespace import Access, RegistryMode, Submitters
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.people.namespaces import change_access, read_access, read_directory
from vskill_platform.store.people.sign_in_rule import SignInRule, read_rule, rule_for

ACCESS = "/api/v1/admin/access"


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
    #: why; kept in the audit
    reason: Reason


class AccessView(Wire, frozen=True):
    """Whom the registry lets in, and who may submit."""

    mode: RegistryMode
    submitters: Submitters
    #: who may sign in with GitHub, in words; null where that is not set up
    github_sign_in: str | None


class AccessPreview(Wire, frozen=True):
    """What a mode would hide and show."""

    mode: RegistryMode
    to: RegistryMode
    reach: ReachPreview
    #: who might sign in with GitHub, in words; null where that is not set up
    github_sign_in: str | None


async def show(services: Services, _request: NoParameters) -> AccessView:
    return _view(services, (await read_access())[0])


async def preview(services: Services, request: PreviewAccess) -> AccessPreview:
    directory = await read_directory()
    access = msgspec.structs.replace(directory.access, mode=request.mode)
    after = msgspec.structs.replace(directory, access=access)
    reach = await preview_directory(directory, after)
    return AccessPreview(directory.access.mode, request.mode, reach, explain_sign_in(services, request.mode))


async def change(services: Services, actor: Principal, request: ChangeAccess) -> AccessView:
    if request.mode is None and request.submitters is None:
        return _view(services, (await read_access())[0])

    def alter(known: Access) -> Access:
        return Access(request.mode or known.mode, request.submitters or known.submitters)

    given = {"mode": request.mode, "submitters": request.submitters}
    details = {field: value.value for field, value in given.items() if value is not None}
    note = AuditNote("registry access", "the registry", actor.actor, request.reason, details)
    return _view(services, await change_access(alter, note))


def _view(services: Services, access: Access) -> AccessView:
    return AccessView(access.mode, access.submitters, explain_sign_in(services, access.mode))


async def read_sign_in_rule() -> SignInRule:
    """The rule for who may sign in with GitHub now."""
    return await read_rule()


def explain_sign_in(services: Services, mode: RegistryMode) -> str | None:
    """The rule for signing in with GitHub, in words; None if that is not set up."""
    settings = services.settings
    return rule_for(settings, mode).in_words if settings.github_client_id else None


SHOW_ACCESS = action(
    show,
    "access.show",
    ACCESS,
    method="GET",
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
    summary="Change whom the registry lets in, and who may submit",
    about="An `internal` registry answers accounts only, but for signing in, health and public keys.",
)
