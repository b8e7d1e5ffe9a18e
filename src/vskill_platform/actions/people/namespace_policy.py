"""The policy of a namespace: who may read it and how much it may hold; and a preview of what a change of visibility
would hide or show.

The first visibility of a namespace is set in two steps (`store.recall.first_management`). Owners may hide it from more
readers; only reviewers may make it public.
"""

from typing import Annotated

import msgspec

from vskill_client.wire.base import Wire
from vskill_core.errors import InvalidInput, NotPermitted
from vskill_platform.actions.action import Reason, Services, action
from vskill_platform.actions.people.namespaces import (
    NAMESPACE,
    NamespaceRequest,
    NamespaceView,
    object_of,
    release,
    view_namespace,
    written,
)
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.domain.people.namespace import (
    EVERYTHING,
    PUBLIC,
    Directory,
    Namespace,
    OwnReview,
    Quotas,
    Reviewers,
    Visibility,
    audience_for,
    internal_form,
    public_form,
    with_namespace,
)
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.ledger.kv.collections import SKILLS, SUBMISSIONS
from vskill_platform.records import decode
from vskill_platform.stages.rescan import request_rescan
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.people.namespaces import (
    NamespaceChange,
    change_namespace,
    read_access,
    read_directory,
    read_namespace,
)
from vskill_platform.store.recall.first_management import (
    finish_preparing,
    public_skills_in,
    public_submissions_in,
)
from vskill_platform.store.skills.catalogue import list_skills
from vskill_platform.store.skills.collections import list_collections
from vskill_platform.store.skills.names import name_namespace
from vskill_platform.store.skills.skills import read_skills
from vskill_platform.worker_context import require_env

#: Of the skills, how many are named.
MOST_NAMES = 50


class ReachChange(Wire, frozen=True):
    """What somebody could read no longer, or could read from then on."""

    #: skills with a live version
    skills: int
    submissions: int
    #: how many of the skills are in a collection
    in_collections: int
    #: the first of the skills
    names: tuple[str, ...]


class ReadersPreview(Wire, frozen=True):
    """What changes for some readers."""

    disappears: ReachChange
    appears: ReachChange


class ReachPreview(Wire, frozen=True):
    """What a change would hide and show."""

    #: for readers who did not sign in
    public: ReadersPreview
    #: for accounts that are no members of a namespace
    accounts: ReadersPreview


NOTHING = ReachChange(0, 0, 0, ())
_FORMS = (public_form, internal_form)


async def preview_directory(before: Directory, after: Directory) -> ReachPreview:
    """The effect of a change of the directory that changes no record."""
    previews = []
    for form in _FORMS:
        gone, come = form(before) - form(after), form(after) - form(before)
        previews.append(ReadersPreview(await _count(gone), await _count(come)))
    return ReachPreview(*previews)


async def preview_managing(before: Directory, after: Directory, name: str) -> ReachPreview:
    """The effect of managing a namespace for the first time, which gives its records its audience."""
    within = await _count_within(name)
    audience = audience_for(after.namespaces.get(name, Namespace(name)), name)
    previews = []
    for form in _FORMS:
        was, will = PUBLIC in form(before), audience in form(after)
        previews.append(
            ReadersPreview(within if was and not will else NOTHING, within if will and not was else NOTHING)
        )
    return ReachPreview(*previews)


async def _count(audiences: frozenset[str]) -> ReachChange:
    """Count the records of these audiences, by the counts that the store keeps."""
    if not audiences:
        return NOTHING
    kv = require_env("kv").kv
    skills = await kv.count_by(SKILLS.prefix, "certification", audiences=audiences)
    submissions = await kv.count_by(SUBMISSIONS.prefix, "state", audiences=audiences)
    listed = await list_skills(limit=MOST_NAMES, audiences=audiences)
    collected = (await read_skills(await _collected(), audiences=audiences)).values()
    return ReachChange(
        sum(count for certification, count in skills.items() if certification is not None),
        sum(submissions.values()),
        sum(not one.withdrawn for one in collected),
        tuple(sorted(one.canonical for one in listed.items)),
    )


async def _count_within(name: str) -> ReachChange:
    """Count the records of a namespace whose records have no audience of their own yet."""
    found = [decode(entry, PublishedSkill) async for entry in public_skills_in(name)]
    live = [one.canonical for one in found if not one.withdrawn]
    submissions = sum([1 async for _ in public_submissions_in(name)])
    collected = (await _collected()).intersection(live)
    return ReachChange(len(live), submissions, len(collected), tuple(live[:MOST_NAMES]))


async def _collected() -> set[str]:
    """The names of the skills in all collections."""
    return {skill for one in (await list_collections(audiences=EVERYTHING)).items for skill in one.skills}


QuotaNumber = Annotated[int, msgspec.Meta(ge=0, le=10**15)]


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


class VisibilityPreview(Wire, frozen=True):
    """What a visibility would hide and show."""

    name: str
    #: null: unmanaged
    visibility: Visibility | None
    to: Visibility
    #: whether only reviewers and admins may set it
    needs_reviewer: bool
    reach: ReachPreview


# Visibility.


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
    """Whether this makes it public; an unmanaged namespace already is."""
    aimed = namespace.preparing or namespace.visibility or Visibility.PUBLIC
    return to is Visibility.PUBLIC and aimed is not Visibility.PUBLIC


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
        released = await release(services, known)
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
    # New readers see a skill in lists only once it has a name for them.
    await name_namespace(name)
    return await view_namespace(actor, changed)


def _not_yours_to_publish(name: str) -> NotPermitted:
    message = f"Only reviewers and admins may make {name} public."
    return NotPermitted(message, needs="reviewer", fix="ask a reviewer of this registry")


# Review.


class SetReviewers(ExplainedNamespace, frozen=True, kw_only=True):
    """Who decides about what waits for review."""

    #: the registry's reviewers (`registry`), or also the namespace's maintainers (`own`)
    to: Reviewers


async def set_reviewers(actor: Principal, request: SetReviewers) -> NamespaceView:
    name = written(request.name)

    async def decide(known: Namespace) -> NamespaceChange | None:
        if request.to is Reviewers.OWN:
            await _require_own_review(known)
        changed = msgspec.structs.replace(known, review=request.to)
        return None if known.review is request.to else NamespaceChange(changed)

    note = AuditNote("namespace review", name, actor.actor, request.reason, {"review": request.to.value})
    return await view_namespace(actor, await change_namespace(name, decide, note))


async def _require_own_review(known: Namespace) -> None:
    """Raise where a namespace may not review itself."""
    if (await read_access())[0].own_review is OwnReview.FORBIDDEN:
        message = "An admin of this registry forbids namespaces to review themselves."
        raise NotPermitted(message, fix="ask an admin to allow it")
    if known.visibility in (None, Visibility.PUBLIC):
        message = f"{known.name} is not hidden from the public, so the registry's reviewers decide there."
        raise InvalidInput(message, field="name", fix="make it `internal` or `team` first")


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
    return await view_namespace(actor, await change_namespace(name, decide, note))


PREVIEW_VISIBILITY = action(
    preview,
    "namespace.preview-visibility",
    f"{NAMESPACE}/visibility",
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
    f"{NAMESPACE}/visibility",
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
    f"{NAMESPACE}/make-public",
    right=Right.REVIEWER,
    summary="Make a namespace public",
    about="Everybody whom the registry lets in may then read it, but for skills that are narrower.",
)
SET_REVIEWERS = action(
    set_reviewers,
    "namespace.set-reviewers",
    f"{NAMESPACE}/review",
    right=Right.OWNER,
    acts_on=object_of,
    errors=(NotPermitted,),
    summary="Change who decides about what waits for review in a namespace",
    about="With `own`, maintainers who did not submit it decide about concerns, signals and rules of the policy, while "
    "the namespace is internal or for its team. What they approve stays for the team until a reviewer agrees.",
    command="namespace review",
)
SET_QUOTAS = action(
    set_quotas,
    "namespace.set-quotas",
    f"{NAMESPACE}/quotas",
    right=Right.ADMIN,
    summary="Set what a namespace may hold",
    about="What is over a quota already stays. All three are set at once.",
    command="namespace quotas",
)
