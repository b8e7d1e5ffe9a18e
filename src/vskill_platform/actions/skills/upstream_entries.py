"""What upstreams have, for their readers: which entries are verified here, and asking for one that is not.

Asking is one request for each entry, whoever asks. Whoever is signed in asks by naming an entry anywhere: on a page, by
the API, the client, a tool or a clone. Nobody's request without an account makes anything.
"""

from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, Wire
from vskill_core.errors import Conflict, NotFound, NotVerifiedYet, RateLimited
from vskill_core.identity import submission_id
from vskill_platform.actions.action import Cursor, PageSize, Services
from vskill_platform.actions.principal import Principal, Right, audiences_of
from vskill_platform.actions.skills.upstreams import UPSTREAM, UpstreamName
from vskill_platform.domain.operation.task import Task
from vskill_platform.domain.people.namespace import audience_for, may_read, namespace_in
from vskill_platform.domain.people.token import TokenScope
from vskill_platform.domain.skills.upstream import Intake, Upstream, UpstreamEntry, upstream_in
from vskill_platform.stages.upstreams import ask_for_entry, must_bring, tasks_of
from vskill_platform.store.people.attempts import count_request
from vskill_platform.store.people.namespaces import read_directory
from vskill_platform.store.skills.quotas import HOUR_MS
from vskill_platform.store.skills.skills import read_skills
from vskill_platform.store.skills.upstreams import find_upstream, read_upstream_entries
from vskill_platform.store.submissions.statistics import position_of
from vskill_platform.submission_store import get_submission

#: Entries that one account asks for in an hour.
ASKED_PER_HOUR = 60

EntryName = Annotated[str, msgspec.Meta(min_length=3, max_length=250, pattern="^[^/]+/[^/]+$")]


class ListEntries(ActionRequest, frozen=True, kw_only=True):
    """A page of what an upstream has."""

    name: UpstreamName
    #: only entries whose name or description holds this
    q: Annotated[str, msgspec.Meta(max_length=200)] = ""
    after: Cursor | None = None
    limit: PageSize = 100


class AskForEntry(ActionRequest, frozen=True, kw_only=True):
    """One entry of an upstream."""

    name: UpstreamName
    #: its name there, as `REPO/SLUG`
    entry: EntryName


class EntryView(Wire, frozen=True):
    """One entry, and whether it can be installed from here."""

    #: as `REPO/SLUG`
    name: str
    #: what it is called here once it is verified
    full_name: str
    description: str
    #: the version that was verified; null while there is none
    verified: str | None
    #: whether somebody asked for it
    asked: bool


class EntriesAnswer(Wire, frozen=True):
    """Entries by name."""

    name: str
    entries: tuple[EntryView, ...]
    #: how many there are in all
    listed: int
    after: str | None


class AskedEntry(Wire, frozen=True):
    """What became of a request."""

    full_name: str
    #: where its run is shown
    submission: str
    #: its place in the line; null where it does not wait in it
    place: int | None
    #: where it stands, in words
    state: str


async def readable_upstream(reader: Principal, name: str) -> Upstream:
    """An upstream of which something comes, and whose namespace the reader may read; NotFound for all others."""
    found, directory = await find_upstream(name), await read_directory()
    namespace = "" if found is None else found.namespace
    audience = audience_for(directory.namespaces.get(namespace), namespace)
    is_closed = found is None or found.intake is Intake.REMEMBERED
    if found is None or is_closed or not may_read(audience, audiences_of(reader)):
        raise NotFound(f"There is no upstream {name!r}.", upstream=name)
    return found


async def list_entries(reader: Principal, request: ListEntries) -> EntriesAnswer:
    upstream = await readable_upstream(reader, request.name)
    known, wanted = await read_upstream_entries(upstream.name), request.q.lower()
    found = [
        one
        for one in known.entries
        if (request.after is None or one.name > request.after)
        and (not wanted or wanted in one.name or wanted in one.description.lower())
    ]
    page = tuple(found[: request.limit])
    full = {one.name: f"{upstream.namespace}/{one.name}" for one in page}
    skills = await read_skills(full.values(), audiences=audiences_of(reader))
    tasks = await tasks_of(upstream, page)
    views = tuple(
        EntryView.of(
            one,
            full_name=full[one.name],
            verified=skills[full[one.name]].current_version if full[one.name] in skills else None,
            asked=one.name in tasks,
        )
        for one in page
    )
    return EntriesAnswer(
        upstream.name, views, len(known.entries), page[-1].name if len(found) > len(page) else None
    )


async def ask(services: Services, actor: Principal, request: AskForEntry) -> AskedEntry:
    upstream = await readable_upstream(actor, request.name)
    entry = (await read_upstream_entries(upstream.name)).find(request.entry.lower())
    if entry is None:
        raise NotFound(f"{upstream.name} does not list {request.entry[:200]}.", entry=request.entry[:200])
    return await _ask(services, actor, upstream, entry)


async def _ask(services: Services, actor: Principal, upstream: Upstream, entry: UpstreamEntry) -> AskedEntry:
    """The request, which is counted only where nobody has made it."""
    task = (await tasks_of(upstream, (entry,))).get(entry.name)
    if must_bring(task, entry):
        if upstream.paused:
            raise Conflict(f"The upstream {upstream.name} is paused.", upstream=upstream.name)
        window = await count_request(
            "upstream entries", f"account {actor.account or actor.actor}", ASKED_PER_HOUR, HOUR_MS
        )
        if not window.allowed and not actor.is_admin:
            message = f"Only {ASKED_PER_HOUR} skills of upstreams can be asked for in an hour."
            raise RateLimited(message, retry_after_s=max(1, window.ends_in_ms // 1000))
        task = await ask_for_entry(upstream, entry)
    return await _asked(services, actor, upstream, entry, task)


async def _asked(
    services: Services, reader: Principal, upstream: Upstream, entry: UpstreamEntry, task: Task | None
) -> AskedEntry:
    """Where the request stands: in the line, ended, or still to be fetched."""
    number, place = submission_id(upstream.place_of(entry)), None
    audiences = audiences_of(reader)
    where = f"{services.settings.public_url.rstrip('/')}/submissions/{number}"
    full_name = f"{upstream.namespace}/{entry.name}"
    try:
        found = await get_submission(number, audiences=audiences)
    except NotFound:
        state = "its files are being fetched"
        if task is not None and not task.state.active:
            state = task.outcome
        return AskedEntry(full_name, number, None, f"requested; {state}")
    line = await position_of(found, audiences=audiences)
    state = f"requested; {found.state.label}: {where}"
    if line is not None:
        place, state = line.place, f"requested, place {line.place}: {where}"
    return AskedEntry(full_name, number, place, state)


async def explain_missing(services: Services, reader: Principal, name: str, missing: NotFound) -> NotFound:
    """Why there is no skill of this full name: where an upstream has it, it is asked for, and the error says where
    that stands. Whoever is not signed in, or whose token submits nothing, is told how to ask."""
    origin = upstream_in(namespace_in(name)) if name.count("/") == 2 else None
    if origin is None:
        return missing
    try:
        upstream = await readable_upstream(reader, origin.lower())
    except NotFound:
        return missing
    entry = (await read_upstream_entries(upstream.name)).find(name.partition("/")[2].lower())
    if entry is None:
        return missing
    may_ask = reader.account is not None and (
        reader.scopes is None or TokenScope.SUBMIT.value in reader.scopes
    )
    try:
        state = (await _ask(services, reader, upstream, entry)).state if may_ask else "sign in and ask for it"
    except Conflict as error:
        state = error.message
    return NotVerifiedYet(f"{name} is not verified yet; {state}", skill=name)


LIST_ENTRIES = UPSTREAM(
    list_entries,
    "entries",
    "List what an upstream has, and which of it is verified",
    method="GET",
    right=Right.ANYONE,
    errors=(NotFound,),
)
ASK_FOR_ENTRY = UPSTREAM(
    ask,
    "ask",
    "Ask for a skill of an upstream to be verified",
    right=Right.SIGNED_IN,
    scope=TokenScope.SUBMIT,
    errors=(NotFound, Conflict, RateLimited),
    about="One request for each skill, whoever asks; the answer says where it stands.",
)
