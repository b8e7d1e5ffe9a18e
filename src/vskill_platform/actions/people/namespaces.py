"""Namespaces: who belongs to one, and in which role. `namespace_policy` has who may read it and what it may hold.

A namespace needs no record: until somebody sets its visibility it is *unmanaged*, and everybody who may read the
registry may read it. Reviewers of the registry see everything that waits, in every namespace.
"""

from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, NoParameters, Wire, maybe_time
from vskill_core.errors import InvalidInput, NotFound
from vskill_platform.actions.action import Reason, Services, action
from vskill_platform.actions.people.teams import find_team
from vskill_platform.actions.principal import ActionObject, Principal, Right, audiences_of
from vskill_platform.domain.people.namespace import (
    Member,
    Namespace,
    NamespaceRole,
    Reviewers,
    Visibility,
    audience_for,
    may_read,
    owners_in,
    upload_namespace,
    uploader_of,
    with_member,
    without_member,
)
from vskill_platform.store.people.accounts import find_enabled
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.people.namespaces import (
    NamespaceChange,
    change_namespace,
    read_directory,
    read_namespace,
)
from vskill_platform.store.people.owners import find_owner_by_name, namespace_by_sign_in, role_in
from vskill_platform.store.skills.quotas import read_usage
from vskill_platform.store.skills.skills import list_by_prefix

NAMESPACES = "/api/v1/namespaces"
NAMESPACE = f"{NAMESPACES}/{{name}}"

#: Of the skills that are for a team only, how many are looked at, and how many of them are named.
MOST_NARROWED, MOST_KEPT = 500, 50
NamespaceName = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
MemberName = Annotated[str, msgspec.Meta(min_length=1, max_length=110)]


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


class HandOver(NamespaceRequest, frozen=True, kw_only=True):
    """Who is to own a namespace."""

    #: an account's name, or `team:` and a team's name
    to: MemberName
    #: why; kept in the audit
    reason: Reason


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
    #: who decides what waits for review: `registry`, or `own` for its maintainers too while it is not public
    review: Reviewers
    #: the first of its skills that stay for its team, because only its own people approved a version
    kept_to_team: tuple[str, ...]


class NamespaceSummary(Wire, frozen=True):
    """A namespace in a list."""

    name: str
    #: null: unmanaged
    visibility: Visibility | None
    preparing: Visibility | None
    your_role: NamespaceRole | None
    members: int
    #: who decides what waits for review: `registry`, or `own` for its maintainers too while it is not public
    review: Reviewers


class NamespaceList(Wire, frozen=True):
    """Namespaces by name."""

    namespaces: tuple[NamespaceSummary, ...]


async def object_of(request: NamespaceRequest) -> ActionObject:
    """The object that rights on a namespace are checked on. Every name is accepted, so that nobody learns which
    namespaces have a record."""
    return ActionObject(namespace=written(request.name))


def written(name: str) -> str:
    """The namespace as skill names contain it: in lower case, unless its host compares names with case."""
    host, _, _ = name.rpartition("~")
    return name if host and host.lower() != "upload" else name.lower()


# Reading.


async def list_namespaces(actor: Principal, _request: NoParameters) -> NamespaceList:
    found = []
    known = (await read_directory()).namespaces
    own = () if actor.account is None else await _own_names(actor.account)
    for name in sorted({*known, *own}):
        role = None if actor.account is None else await role_in(actor.account, name, actor.groups)
        is_bound = actor.namespace not in (None, name)
        if (role is None and not actor.is_reviewer) or is_bound:
            continue
        one = known.get(name, Namespace(name))
        found.append(NamespaceSummary.of(one, your_role=role, members=len(one.members)))
    return NamespaceList(tuple(found))


async def _own_names(account: str) -> tuple[str, ...]:
    """The namespaces that belong to the account without a record."""
    by_sign_in = await namespace_by_sign_in(account)
    return (upload_namespace(account), *((by_sign_in,) if by_sign_in else ()))


async def show(actor: Principal, request: NamespaceRequest) -> NamespaceView:
    namespace, _ = await read_namespace(written(request.name))
    return await view_namespace(actor, namespace)


# Members.


async def release(services: Services, namespace: Namespace) -> Namespace:
    """The namespace with its owner by name as a member. From then on only its members decide who owns it: an expired
    sign-in, or somebody else who takes the name, changes nothing."""
    owner = None if namespace.released else await find_owner_by_name(namespace)
    released = msgspec.structs.replace(namespace, released=True)
    if owner is None or any(one.principal == f"user:{owner}" for one in owners_in(namespace.members)):
        return released
    how = "sign-in" if uploader_of(namespace.name) is None else "upload"
    return with_member(released, Member(f"user:{owner}", NamespaceRole.OWNER, services.kv.now(), how))


async def add_member(services: Services, actor: Principal, request: AddMember) -> NamespaceView:
    name, principal = written(request.name), _principal(request.member)
    member = Member(
        principal, request.role, services.kv.now(), "added", by=actor.actor, reason=request.reason
    )

    async def decide(known: Namespace) -> NamespaceChange | None:
        await _require_existing(actor, principal)
        released = await release(services, known)
        held = next((one for one in released.members if (one.principal, one.repo) == (principal, "")), None)
        if held is not None and held.role is request.role:
            return None if released == known else NamespaceChange(released)
        if held is not None and request.role is not NamespaceRole.OWNER:
            _keep_an_owner(released, principal)
        return NamespaceChange(with_member(released, member))

    details = {"member": principal, "role": request.role.value}
    note = AuditNote("namespace member added", name, actor.actor, request.reason, details)
    return await view_namespace(actor, await change_namespace(name, decide, note))


async def hand_over(services: Services, actor: Principal, request: HandOver) -> NamespaceView:
    name, principal = written(request.name), _principal(request.to)
    owner = Member(
        principal, NamespaceRole.OWNER, services.kv.now(), "transfer", by=actor.actor, reason=request.reason
    )

    async def decide(known: Namespace) -> NamespaceChange | None:
        await _require_existing(actor, principal)
        left = tuple(one for one in known.members if one not in owners_in(known.members))
        return NamespaceChange(
            with_member(msgspec.structs.replace(known, members=left, released=True), owner)
        )

    note = AuditNote("namespace handed over", name, actor.actor, request.reason, {"to": principal})
    return await view_namespace(actor, await change_namespace(name, decide, note))


async def remove_member(actor: Principal, request: RemoveMember) -> NamespaceView:
    name, principal = written(request.name), _principal(request.member)
    changed = await _remove(name, principal, actor.actor, request.reason)
    return await view_namespace(actor, changed)


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
    """Raise InvalidInput if the namespace would have no owner without this member."""
    owners = owners_in(known.members)
    if [one.principal for one in owners] == [principal]:
        message = f"{principal.removeprefix('user:')} is the only owner of {known.name}."
        raise InvalidInput(message, field="member", fix="make somebody else an owner first")


def _principal(member: str) -> str:
    return member if member.startswith(("user:", "team:")) else f"user:{member}"


async def _require_existing(actor: Principal, principal: str) -> None:
    """Raise InvalidInput if there is no such account, or no such team that the actor may see."""
    kind, _, name = principal.partition(":")
    is_team = kind == "team"
    found = await find_team(actor, name) if is_team else await find_enabled(name)
    if found is None:
        what = f"team {name!r} that you belong to" if is_team else f"account {name!r}"
        fix = "name an account, or `team:` and a team"
        raise InvalidInput(f"There is no {what}.", field="member", fix=fix)


# Answers.


async def view_namespace(actor: Principal, namespace: Namespace) -> NamespaceView:
    usage = await read_usage(namespace.name) if namespace.managed else None
    return NamespaceView.of(
        namespace,
        preparing_since=maybe_time(namespace.preparing_since) if namespace.preparing else None,
        your_role=None
        if actor.account is None
        else await role_in(actor.account, namespace.name, actor.groups),
        owner_by_name=await find_owner_by_name(namespace),
        members=tuple(map(_member_view, sorted(namespace.members, key=_order))),
        usage=None if usage is None else UsageView.of(usage),
        kept_to_team=await _kept_to_team(actor, namespace),
    )


async def _kept_to_team(actor: Principal, namespace: Namespace) -> tuple[str, ...]:
    audience, name = audience_for(namespace, namespace.name, Visibility.TEAM), namespace.name
    if not namespace.managed or not may_read(audience, audiences_of(actor)):
        return ()
    found, _ = await list_by_prefix(f"{name}/", None, MOST_NARROWED, audiences=frozenset({audience}))
    return tuple(one.canonical for one in found if one.kept_to_team)[:MOST_KEPT]


def _order(member: Member) -> tuple[bool, int, str]:
    """Members of the whole namespace first, then the highest role."""
    return bool(member.repo), -member.role.rank, member.principal


def _member_view(member: Member) -> MemberView:
    shown = member.principal.removeprefix("user:")
    return MemberView.of(member, member=shown, repo=member.repo or None)


LIST_NAMESPACES = action(
    list_namespaces,
    "namespace.list",
    NAMESPACES,
    right=Right.SIGNED_IN,
    summary="List the namespaces that you belong to",
    about="Reviewers and admins see all that have a record.",
)
SHOW_NAMESPACE = action(
    show,
    "namespace.show",
    NAMESPACE,
    right=Right.MEMBER,
    acts_on=object_of,
    summary="Show a namespace with its members, quotas and use",
    about="The registry's reviewers see everything that waits there.",
)
ADD_MEMBER = action(
    add_member,
    "namespace.add-member",
    f"{NAMESPACE}/members",
    right=Right.OWNER,
    acts_on=object_of,
    summary="Add a member to a namespace, or change its role",
    about="Readers read, authors submit, maintainers withdraw and delete, owners decide who belongs to it and who may "
    "read it. A namespace keeps at least one owner.",
    command="namespace add",
)
HAND_OVER = action(
    hand_over,
    "namespace.hand-over",
    f"{NAMESPACE}/hand-over",
    right=Right.OWNER,
    acts_on=object_of,
    summary="Hand a namespace over to a team or an account",
    about="It becomes the only owner, also of what somebody who left has uploaded. Skills keep their names, members "
    "with other roles stay.",
)
REMOVE_MEMBER = action(
    remove_member,
    "namespace.remove-member",
    f"{NAMESPACE}/members/remove",
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
    f"{NAMESPACE}/leave",
    right=Right.SIGNED_IN,
    errors=(NotFound,),
    status=204,
    summary="Leave a namespace",
    about="Whoever belongs to it by a team leaves the team instead.",
)
