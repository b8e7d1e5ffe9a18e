"""Namespaces, as their people manage them: who belongs to one and in which role, who may read it, and what it may hold.

A namespace needs no record: until somebody sets its visibility it is *unmanaged*, and readable as the registry is. Its
first visibility is set in two steps (`store.recall.first_management`). Its owners may hide it from more readers; to
show it to everybody is for reviewers. The registry's reviewers see everything that waits, in every namespace.
"""

from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, Wire
from vskill_core.errors import InvalidInput, NotFound, NotPermitted
from vskill_platform.actions.action import NoParameters, Services, action
from vskill_platform.actions.checks import Reason
from vskill_platform.actions.people.teams import find_team
from vskill_platform.actions.people.visibility_preview import (
    ReachPreview,
    preview_directory,
    preview_managing,
)
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.rights import ActionObject, Right
from vskill_platform.actions.wire import derive, maybe_time
from vskill_platform.domain.people.namespace import (
    Member,
    Namespace,
    NamespaceRole,
    Quotas,
    Visibility,
    owners_in,
    upload_namespace,
    uploader_of,
    with_member,
    with_namespace,
    without_member,
)
from vskill_platform.stages.rescan import request_rescan
from vskill_platform.store.people.accounts import find_enabled
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.people.namespaces import (
    NamespaceChange,
    change_namespace,
    read_directory,
    read_namespace,
)
from vskill_platform.store.people.owners import find_owner_by_name, namespace_by_sign_in, role_in
from vskill_platform.store.recall.first_management import finish_preparing
from vskill_platform.store.skills.names import name_namespace
from vskill_platform.store.skills.quotas import read_usage

NAMESPACES = "/api/v1/namespaces"
_ONE = f"{NAMESPACES}/{{name}}"

NamespaceName = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
MemberName = Annotated[str, msgspec.Meta(min_length=1, max_length=110)]
QuotaNumber = Annotated[int, msgspec.Meta(ge=0, le=10**15)]


class NamespaceRequest(ActionRequest, frozen=True, kw_only=True):
    """One namespace."""

    #: the first part of its skills' full names, such as `acme` or `upload~mia`
    name: NamespaceName


class AddMember(NamespaceRequest, frozen=True, kw_only=True):
    """A member, or another role for one."""

    #: an account's name, or `team:` and a team's name
    member: MemberName
    #: what the member may do
    role: NamespaceRole
    #: why; kept in the audit
    reason: Reason


class RemoveMember(NamespaceRequest, frozen=True, kw_only=True):
    """A member who is to go."""

    #: an account's name, or `team:` and a team's name
    member: MemberName
    #: why; kept in the audit
    reason: Reason


class PreviewVisibility(NamespaceRequest, frozen=True, kw_only=True):
    """A visibility that nobody has set yet."""

    #: who could read it
    to: Visibility = Visibility.TEAM


class ChangeVisibility(NamespaceRequest, frozen=True, kw_only=True):
    """A visibility, and why."""

    #: who may read it
    to: Visibility
    #: why; kept in the audit
    reason: Reason


class ExplainedNamespace(NamespaceRequest, frozen=True, kw_only=True):
    """One namespace, and why."""

    #: why; kept in the audit
    reason: Reason


class SetQuotas(ExplainedNamespace, frozen=True, kw_only=True):
    """What a namespace may hold. What is left out has no limit."""

    #: how many skills
    skills: QuotaNumber | None = None
    #: bytes of all files of all versions
    bytes: QuotaNumber | None = None
    #: how many submissions in an hour
    submissions_per_hour: QuotaNumber | None = None


class MemberView(Wire, frozen=True):
    """A person or team with a role."""

    #: an account's name, or `team:` and a team's name
    member: str
    role: NamespaceRole
    since: str
    #: `file`, `sign-in`, `upload`, `transfer` or `added`
    how: str
    #: the repository that the role is limited to; null: the whole namespace
    repo: str | None
    #: who added it
    by: str | None


class QuotaView(Wire, frozen=True):
    """What a namespace may hold; null is no limit."""

    skills: int | None
    bytes: int | None
    submissions_per_hour: int | None


class UsageView(Wire, frozen=True):
    """What it uses of that."""

    skills: int
    bytes: int
    #: in the running hour; counted only where there is a quota
    submissions: int


class NamespaceView(Wire, frozen=True):
    """A namespace, as its members see it."""

    name: str
    #: null: unmanaged, so readable as the registry is
    visibility: Visibility | None
    #: the visibility that it is being prepared for
    preparing: Visibility | None
    preparing_since: str | None
    #: your role; null for reviewers and admins who are no members
    your_role: NamespaceRole | None
    #: the account that owns it by its name, until its members say who owns it
    owner_by_name: str | None
    members: tuple[MemberView, ...]
    quotas: QuotaView
    #: null: not counted, because it is unmanaged
    usage: UsageView | None


class NamespaceSummary(Wire, frozen=True):
    """A namespace in a list."""

    name: str
    #: null: unmanaged
    visibility: Visibility | None
    preparing: Visibility | None
    your_role: NamespaceRole | None
    members: int


class NamespaceList(Wire, frozen=True):
    """Namespaces by name."""

    namespaces: tuple[NamespaceSummary, ...]


class VisibilityPreview(Wire, frozen=True):
    """What a visibility would hide and show."""

    name: str
    #: null: unmanaged
    visibility: Visibility | None
    to: Visibility
    #: whether only reviewers and admins may set it
    needs_reviewer: bool
    reach: ReachPreview


async def object_of(request: NamespaceRequest) -> ActionObject:
    """What rights on a namespace are evaluated on. Any name can be one, so nobody learns which have a record."""
    return ActionObject(namespace=written(request.name))


def written(name: str) -> str:
    """A namespace as it is written in names: hosts that compare without case have lower-case names."""
    host, _, _ = name.rpartition("~")
    return name if host and host.lower() != "upload" else name.lower()


# Reading.


async def list_namespaces(actor: Principal, _request: NoParameters) -> NamespaceList:
    found = []
    known = (await read_directory()).namespaces
    own = () if actor.account is None else await _own_names(actor.account)
    for name in sorted({*known, *own}):
        role = None if actor.account is None else await role_in(actor.account, name)
        is_bound = actor.namespace not in (None, name)
        if (role is None and not actor.is_reviewer) or is_bound:
            continue
        one = known.get(name, Namespace(name))
        found.append(NamespaceSummary(name, one.visibility, one.preparing, role, len(one.members)))
    return NamespaceList(tuple(found))


async def _own_names(account: str) -> tuple[str, ...]:
    """The namespaces that are the account's without a record."""
    by_sign_in = await namespace_by_sign_in(account)
    return (upload_namespace(account), *((by_sign_in,) if by_sign_in else ()))


async def show(actor: Principal, request: NamespaceRequest) -> NamespaceView:
    namespace, _ = await read_namespace(written(request.name))
    return await _view(actor, namespace)


async def preview(request: PreviewVisibility) -> VisibilityPreview:
    namespace, _ = await read_namespace(written(request.name))
    directory = await read_directory()
    after = with_namespace(directory, msgspec.structs.replace(namespace, visibility=request.to))
    if namespace.managed:
        reach = await preview_directory(directory, after)
    else:
        reach = await preview_managing(directory, after, namespace.name)
    needs = _goes_public(namespace, request.to)
    return VisibilityPreview(namespace.name, namespace.visibility, request.to, needs, reach)


def _goes_public(namespace: Namespace, to: Visibility) -> bool:
    """What is unmanaged is public already."""
    aimed = namespace.preparing or namespace.visibility or Visibility.PUBLIC
    return to is Visibility.PUBLIC and aimed is not Visibility.PUBLIC


# Visibility.


async def change_visibility(services: Services, actor: Principal, request: ChangeVisibility) -> NamespaceView:
    return await _set_visibility(services, actor, request, request.to, may_go_public=actor.is_reviewer)


async def make_public(services: Services, actor: Principal, request: ExplainedNamespace) -> NamespaceView:
    return await _set_visibility(services, actor, request, Visibility.PUBLIC, may_go_public=True)


async def _set_visibility(
    services: Services,
    actor: Principal,
    request: ChangeVisibility | ExplainedNamespace,
    to: Visibility,
    *,
    may_go_public: bool,
) -> NamespaceView:
    name = written(request.name)

    async def decide(known: Namespace) -> NamespaceChange | None:
        if _goes_public(known, to) and not may_go_public:
            raise _not_yours_to_publish(name)
        if known.preparing is to or (known.preparing is None and known.visibility is to):
            return None
        released = await _release(services, known)
        if known.managed and known.preparing is None:
            return NamespaceChange(msgspec.structs.replace(released, visibility=to))
        began = known.preparing_since or services.kv.now()
        return NamespaceChange(
            msgspec.structs.replace(
                released, visibility=Visibility.PUBLIC, preparing=to, preparing_since=began
            )
        )

    note = AuditNote("namespace visibility", name, actor.actor, request.reason, {"visibility": to.value})
    await change_namespace(name, decide, note)
    changed = await finish_preparing(name, request_rescan)
    # More people may read its skills now: until a skill has a name for them, no list shows it.
    await name_namespace(name)
    return await _view(actor, changed)


def _not_yours_to_publish(name: str) -> NotPermitted:
    message = f"Only reviewers and admins may make {name} public."
    return NotPermitted(message, needs="reviewer", fix="ask a reviewer of this registry")


async def _release(services: Services, namespace: Namespace) -> Namespace:
    """The namespace with its owner by name as a member. From then on its members alone say who owns it, so that a
    sign-in that ran out, or somebody else with the name, changes nothing."""
    owner = None if namespace.released else await find_owner_by_name(namespace)
    released = msgspec.structs.replace(namespace, released=True)
    if owner is None or any(one.principal == f"user:{owner}" for one in owners_in(namespace.members)):
        return released
    how = "sign-in" if uploader_of(namespace.name) is None else "upload"
    return with_member(released, Member(f"user:{owner}", NamespaceRole.OWNER, services.kv.now(), how))


# Members.


async def add_member(services: Services, actor: Principal, request: AddMember) -> NamespaceView:
    name, principal = written(request.name), _principal(request.member)
    member = Member(
        principal, request.role, services.kv.now(), "added", by=actor.actor, reason=request.reason
    )

    async def decide(known: Namespace) -> NamespaceChange | None:
        await _require_existing(actor, principal)
        released = await _release(services, known)
        held = next((one for one in released.members if (one.principal, one.repo) == (principal, "")), None)
        if held is not None and held.role is request.role:
            return None if released == known else NamespaceChange(released)
        if held is not None and request.role is not NamespaceRole.OWNER:
            _keep_an_owner(released, principal)
        return NamespaceChange(with_member(released, member))

    details = {"member": principal, "role": request.role.value}
    note = AuditNote("namespace member added", name, actor.actor, request.reason, details)
    return await _view(actor, await change_namespace(name, decide, note))


async def remove_member(actor: Principal, request: RemoveMember) -> NamespaceView:
    name, principal = written(request.name), _principal(request.member)
    changed = await _remove(name, principal, actor.actor, request.reason)
    return await _view(actor, changed)


async def leave(actor: Principal, request: NamespaceRequest) -> None:
    if actor.account is None:
        raise InvalidInput("Only an account can leave a namespace.", field="account", fix="add --as ACCOUNT")
    await _remove(written(request.name), f"user:{actor.account}", actor.actor, "left")


async def _remove(name: str, principal: str, by: str, reason: str) -> Namespace:
    async def decide(known: Namespace) -> NamespaceChange | None:
        if not any((one.principal, one.repo) == (principal, "") for one in known.members):
            shown = principal.removeprefix("user:")
            raise NotFound(f"{shown} is no member of {name} by name.", namespace=name)
        _keep_an_owner(known, principal)
        return NamespaceChange(without_member(known, principal))

    note = AuditNote("namespace member removed", name, by, reason, {"member": principal})
    return await change_namespace(name, decide, note)


def _keep_an_owner(known: Namespace, principal: str) -> None:
    """Raise InvalidInput where nobody would own the namespace without this member."""
    owners = owners_in(known.members)
    if [one.principal for one in owners] == [principal]:
        message = f"{principal.removeprefix('user:')} is the only owner of {known.name}."
        raise InvalidInput(message, field="member", fix="make somebody else an owner first")


def _principal(member: str) -> str:
    return member if member.startswith(("user:", "team:")) else f"user:{member}"


async def _require_existing(actor: Principal, principal: str) -> None:
    """Raise InvalidInput where there is no such account, or no such team that the actor may know of."""
    kind, _, name = principal.partition(":")
    is_team = kind == "team"
    found = await find_team(actor, name) if is_team else await find_enabled(name)
    if found is None:
        what = f"team {name!r} that you belong to" if is_team else f"account {name!r}"
        fix = "name an account, or `team:` and a team"
        raise InvalidInput(f"There is no {what}.", field="member", fix=fix)


# Quotas.


async def set_quotas(actor: Principal, request: SetQuotas) -> NamespaceView:
    name = written(request.name)
    quotas = Quotas(request.skills, request.bytes, request.submissions_per_hour)

    async def decide(known: Namespace) -> NamespaceChange | None:
        if not known.managed:
            message = f"{name} is unmanaged, so nothing is counted there."
            raise InvalidInput(message, field="name", fix="set its visibility first; `public` will do")
        return (
            None if known.quotas == quotas else NamespaceChange(msgspec.structs.replace(known, quotas=quotas))
        )

    details = {
        field: str(value) for field, value in msgspec.structs.asdict(quotas).items() if value is not None
    }
    note = AuditNote("namespace quotas", name, actor.actor, request.reason, details)
    return await _view(actor, await change_namespace(name, decide, note))


# Answers.


async def _view(actor: Principal, namespace: Namespace) -> NamespaceView:
    usage = await read_usage(namespace.name) if namespace.managed else None
    return derive(
        NamespaceView,
        namespace,
        preparing_since=maybe_time(namespace.preparing_since) if namespace.preparing else None,
        your_role=None if actor.account is None else await role_in(actor.account, namespace.name),
        owner_by_name=await find_owner_by_name(namespace),
        members=tuple(map(_member_view, sorted(namespace.members, key=_order))),
        usage=None if usage is None else derive(UsageView, usage),
    )


def _order(member: Member) -> tuple[bool, int, str]:
    """The whole namespace before single repositories, the highest role first."""
    return bool(member.repo), -member.role.rank, member.principal


def _member_view(member: Member) -> MemberView:
    shown = member.principal.removeprefix("user:")
    return derive(MemberView, member, member=shown, repo=member.repo or None)


LIST_NAMESPACES = action(
    list_namespaces,
    "namespace.list",
    NAMESPACES,
    method="GET",
    right=Right.SIGNED_IN,
    summary="List the namespaces that you belong to",
    about="Reviewers and admins see all that have a record.",
)
SHOW_NAMESPACE = action(
    show,
    "namespace.show",
    _ONE,
    method="GET",
    right=Right.MEMBER,
    acts_on=object_of,
    summary="Show a namespace with its members, quotas and use",
    about="The registry's reviewers see everything that waits there.",
)
ADD_MEMBER = action(
    add_member,
    "namespace.add-member",
    f"{_ONE}/members",
    right=Right.OWNER,
    acts_on=object_of,
    summary="Add a member to a namespace, or change its role",
    about="Readers read, authors submit, maintainers withdraw and delete, owners decide who belongs to it and who may "
    "read it. A namespace keeps at least one owner.",
    command="namespace add",
)
REMOVE_MEMBER = action(
    remove_member,
    "namespace.remove-member",
    f"{_ONE}/members/remove",
    right=Right.OWNER,
    acts_on=object_of,
    errors=(NotFound,),
    summary="Remove a member from a namespace",
    about="What it could read as a member it cannot read from then on.",
    command="namespace remove",
)
LEAVE_NAMESPACE = action(
    leave,
    "namespace.leave",
    f"{_ONE}/leave",
    right=Right.SIGNED_IN,
    errors=(NotFound,),
    status=204,
    summary="Leave a namespace",
    about="Whoever belongs to it by a team leaves the team instead.",
)
PREVIEW_VISIBILITY = action(
    preview,
    "namespace.preview-visibility",
    f"{_ONE}/visibility",
    method="GET",
    right=Right.MEMBER,
    acts_on=object_of,
    summary="Show what a visibility would hide and show",
    about="Nothing is changed.",
    command="namespace preview",
)
CHANGE_VISIBILITY = action(
    change_visibility,
    "namespace.change-visibility",
    f"{_ONE}/visibility",
    right=Right.OWNER,
    acts_on=object_of,
    summary="Change who may read a namespace",
    about="`internal` is every account, `team` its members. What is internal or for the team is made public by a "
    "reviewer only. The first time, its records are prepared before anything is hidden.",
    command="namespace visibility",
)
MAKE_PUBLIC = action(
    make_public,
    "namespace.make-public",
    f"{_ONE}/make-public",
    right=Right.REVIEWER,
    summary="Make a namespace public",
    about="Everybody whom the registry lets in may then read it, but for skills that are narrower.",
)
SET_QUOTAS = action(
    set_quotas,
    "namespace.set-quotas",
    f"{_ONE}/quotas",
    right=Right.ADMIN,
    summary="Set what a namespace may hold",
    about="What is over a quota already stays. All three are set at once.",
    command="namespace quotas",
)

ACTIONS = (
    LIST_NAMESPACES,
    SHOW_NAMESPACE,
    ADD_MEMBER,
    REMOVE_MEMBER,
    LEAVE_NAMESPACE,
    PREVIEW_VISIBILITY,
    CHANGE_VISIBILITY,
    MAKE_PUBLIC,
    SET_QUOTAS,
)
