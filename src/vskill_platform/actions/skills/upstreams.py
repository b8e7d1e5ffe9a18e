"""Upstreams: other people's marketplaces, repositories and registries, whose skills come here to be verified. An admin
says which, and what of each may come; the rest is `stages.upstreams`."""

from collections.abc import Callable
from itertools import starmap
from typing import Annotated, Any

import msgspec

from vskill_client.wire.base import ActionRequest, NoParameters, Wire
from vskill_core.errors import Conflict, InvalidInput, NotFound
from vskill_core.identity import MAX_URL, normalise
from vskill_platform.actions.action import Actions, Reason
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.domain.skills.upstream import Intake, Upstream, UpstreamKind
from vskill_platform.notifications.post import check_url
from vskill_platform.stages.upstreams import ask_for_sync
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.skills.upstreams import (
    change_upstream,
    get_upstream,
    list_upstreams,
    remove_upstream,
)
from vskill_platform.store.verdicts.memory import refresh_memory
from vskill_platform.worker_context import require_env

UPSTREAMS = "/api/v1/upstreams"
_ONE = f"{UPSTREAMS}/{{name}}"
MOST_PATTERNS = 100

UpstreamName = Annotated[str, msgspec.Meta(max_length=32, pattern="^[a-z0-9]+(-[a-z0-9]+)*$")]
Address = Annotated[str, msgspec.Meta(max_length=MAX_URL)]
EntryPattern = Annotated[str, msgspec.Meta(max_length=300, pattern=r"^[^\x00-\x1f\[\]?]+$")]
EntryPatterns = Annotated[tuple[EntryPattern, ...], msgspec.Meta(max_length=MOST_PATTERNS)]


class AddUpstream(ActionRequest, frozen=True, kw_only=True):
    """An upstream, and what of it may come."""

    #: its short name, part of its skills' names: lower-case words with single hyphens
    name: UpstreamName
    #: what it is
    kind: UpstreamKind
    #: where it is
    address: Address
    #: what may come, as `REPO/SLUG` with `*` for any characters; everything if left out
    patterns: EntryPatterns = ()
    #: whether its skills come when somebody asks for them, all of them, or none: then the memory alone knows them
    intake: Intake = Intake.ON_REQUEST
    #: why; kept in the audit
    reason: Reason


class ChangeUpstream(ActionRequest, frozen=True, kw_only=True):
    """What an upstream is from now on."""

    name: UpstreamName
    #: where it is; as before if left out
    address: Address = ""
    #: what may come from now on; everything if left out
    patterns: EntryPatterns = ()
    #: how its skills come; as before if left out
    intake: Intake | None = None
    #: why; kept in the audit
    reason: Reason


class NamedUpstream(ActionRequest, frozen=True, kw_only=True):
    """One upstream."""

    name: UpstreamName


class DecideUpstream(NamedUpstream, frozen=True, kw_only=True):
    """One upstream, and why something is done to it."""

    #: why; kept in the audit
    reason: Reason


class NamedReason(Wire, frozen=True):
    """An entry, and why something is said of it."""

    #: empty: more than one
    name: str
    reason: str


class UpstreamView(Wire, frozen=True):
    """An upstream, and what its last synchronisation found."""

    name: str
    #: `marketplace`, `repository`, `clawhub`, `registry` or `bundle`
    kind: str
    address: str
    #: empty: everything
    patterns: tuple[str, ...]
    #: `on-request`, `all` or `remembered`
    intake: str
    paused: bool
    #: the first part of its skills' full names
    namespace: str
    by: str
    created_at: str
    changed_at: str
    #: null: not looked at yet
    checked_at: str | None
    #: when it was last read without a problem
    good_at: str | None
    #: why the last look failed; empty where it did not
    problem: str
    #: what the last look that did not fail found
    found: str
    #: how many entries are listed
    listed: int
    #: entries that are not listed
    left_out: tuple[NamedReason, ...]
    #: what came from here and was withdrawn there; it stays here until somebody decides
    withdrawn: tuple[NamedReason, ...]


class UpstreamsAnswer(Wire, frozen=True):
    """All upstreams by name."""

    upstreams: tuple[UpstreamView, ...]


async def list_all(_request: NoParameters) -> UpstreamsAnswer:
    return UpstreamsAnswer(tuple(map(view_upstream, await list_upstreams())))


async def show(request: NamedUpstream) -> UpstreamView:
    return view_upstream(await get_upstream(request.name))


async def add(actor: Principal, request: AddUpstream) -> UpstreamView:
    made = Upstream(
        name=request.name,
        kind=request.kind,
        address=_checked_address(request.kind, request.address),
        patterns=request.patterns,
        intake=request.intake,
        by=actor.actor,
        created_at=require_env("kv").kv.now(),
    )

    def make(known: Upstream | None) -> Upstream:
        if known is not None:
            raise Conflict(f"There is an upstream {request.name!r} already.", upstream=request.name)
        return made

    details = {"kind": made.kind.value, "address": made.address, "intake": made.intake.value}
    note = AuditNote("upstream added", made.name, actor.actor, request.reason, details)
    return await _written(note, make)


async def change(actor: Principal, request: ChangeUpstream) -> UpstreamView:
    known = await get_upstream(request.name)
    address = _checked_address(known.kind, request.address) if request.address else known.address
    intake = request.intake or known.intake
    return await _decide("changed", actor, request, address=address, patterns=request.patterns, intake=intake)


async def pause(actor: Principal, request: DecideUpstream) -> UpstreamView:
    return await _decide("paused", actor, request, paused=True)


async def resume(actor: Principal, request: DecideUpstream) -> UpstreamView:
    return await _decide("resumed", actor, request, paused=False)


async def synchronise(request: NamedUpstream) -> UpstreamView:
    found = await get_upstream(request.name)
    if found.paused:
        raise Conflict(f"{found.name} is paused; resume it first.", upstream=found.name)
    await ask_for_sync(found)
    return view_upstream(found)


async def remove(actor: Principal, request: DecideUpstream) -> None:
    known = await get_upstream(request.name)
    await remove_upstream(AuditNote("upstream removed", known.name, actor.actor, request.reason))
    if known.intake is Intake.REMEMBERED:
        await refresh_memory(actor.actor, f"the upstream {known.name} was removed: {request.reason}")


async def _decide(
    said: str, actor: Principal, request: DecideUpstream | ChangeUpstream, /, **changed: Any
) -> UpstreamView:
    """Change an upstream; the audit says what."""

    def to_change(found: Upstream | None) -> Upstream:
        if found is None:
            raise NotFound(f"There is no upstream {request.name!r}.", upstream=request.name)
        # Another address is another registry, which has keys of its own.
        is_same = changed.get("address", found.address) == found.address
        state = found.state if is_same else msgspec.structs.replace(found.state, keys=())
        return msgspec.structs.replace(found, **changed, state=state)

    details = {
        name: " ".join(value) if isinstance(value, tuple) else str(value) for name, value in changed.items()
    }
    note = AuditNote(f"upstream {said}", request.name, actor.actor, request.reason, details)
    return await _written(note, to_change)


async def _written(note: AuditNote, change: Callable[[Upstream | None], Upstream]) -> UpstreamView:
    made = await change_upstream(note, change)
    if not made.paused:
        await ask_for_sync(made)
    return view_upstream(made)


def _checked_address(kind: UpstreamKind, address: str) -> str:
    """A repository's as all places are written; another one as it is."""
    try:
        if kind not in (UpstreamKind.MARKETPLACE, UpstreamKind.REPOSITORY):
            return check_url(address)
        identity = normalise(address)
    except InvalidInput as error:
        raise InvalidInput(error.message, field="address", fix=error.fix) from None
    if identity.path:
        fix = "give the repository alone, and choose folders by patterns"
        raise InvalidInput("The address names a folder.", field="address", fix=fix)
    return identity.url


def view_upstream(found: Upstream) -> UpstreamView:
    withdrawn = tuple(starmap(NamedReason, found.state.withdrawn.items()))
    return UpstreamView.of(found, found.state, withdrawn=withdrawn)


UPSTREAM = Actions("upstream", _ONE, {"right": Right.ADMIN, "errors": (NotFound, Conflict)})
LIST_UPSTREAMS = UPSTREAM(
    list_all, "list", "List upstreams, and what was found at each", path=UPSTREAMS, method="GET", errors=()
)
SHOW_UPSTREAM = UPSTREAM(
    show, "show", "Show an upstream, and what its last synchronisation found", path=_ONE, method="GET"
)
ADD_UPSTREAM = UPSTREAM(
    add,
    "add",
    "Add another marketplace, repository or registry whose skills may come here",
    path=UPSTREAMS,
    errors=(Conflict,),
    status=201,
    about="It is read at once, and every day. Nothing of it is served before it was verified here, and then the bytes "
    "that were verified are served, whatever becomes of the upstream.",
)
CHANGE_UPSTREAM = UPSTREAM(change, "change", "Change where an upstream is, and what of it may come")
PAUSE_UPSTREAM = UPSTREAM(pause, "pause", "Read nothing more of an upstream until it is resumed")
RESUME_UPSTREAM = UPSTREAM(resume, "resume", "Read an upstream again")
SYNC_UPSTREAM = UPSTREAM(synchronise, "sync", "Read an upstream now")
REMOVE_UPSTREAM = UPSTREAM(remove, "remove", "Remove an upstream; its skills stay", status=204)
