"""Which versions were withdrawn: the signed list for programs, the events in order, and one page for people.

Each is a document about the whole registry, in two forms (`principal.document_reader`). Skills that only members of a
namespace may read are in the list of that namespace alone.
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from vskill_client.wire import skills as skills_calls
from vskill_client.wire.base import ActionRequest, Wire, iso_time
from vskill_client.wire.skills import ReadRevocationList
from vskill_core.dsse import ENVELOPE_TYPE, seal
from vskill_core.errors import NotFound
from vskill_core.revocation_list import DAY_MS, PAYLOAD_TYPE, RevokedStatus
from vskill_platform.actions import principal
from vskill_platform.actions.action import Keep, Services, action, action_for
from vskill_platform.domain.blocklist import BlockEntry
from vskill_platform.domain.people.namespace import Everything, namespace_audiences
from vskill_platform.domain.recall.block_index import Blocklist
from vskill_platform.domain.skills.skill import (
    PublishedSkill,
    Revocation,
    RevokedList,
    RevokedVersion,
    VersionRef,
    revoked_versions,
    revokes_content,
    steps_by_kind,
)
from vskill_platform.signing.from_records import encode_document, make_document
from vskill_platform.store.recall.attestations import remember_signer
from vskill_platform.store.recall.revoked import read_archive_digests, read_revoked, read_revoked_in
from vskill_platform.store.revocations import PAGE, find_serial, list_revocations, read_serial
from vskill_platform.store.skills.skills import read_skills

#: Events in one answer.
MOST_EVENTS = 200

Serial = Annotated[int, msgspec.Meta(ge=0, le=10**14)]


class FollowRevocations(ActionRequest, frozen=True, kw_only=True):
    """Events after a serial."""

    #: the last serial that was seen; 0 begins with the first
    after: Serial = 0


class RecallView(Wire, frozen=True):
    """Why whoever has a version should not use it any more."""

    #: blocked, taken-down, yanked or deleted; yanked is a warning, all others are a reason to remove it
    status: str
    reason: str
    #: null where nobody knows
    since: str | None
    #: the version to install instead; null where there is none
    replacement: str | None
    threat_type: str | None
    severity: str | None

    @property
    def revokes(self) -> bool:
        return self.status != RevokedStatus.YANKED


class RevocationStepView(Wire, frozen=True):
    """What became of one version."""

    version: str
    digest: str
    content_hash: str
    #: blocked, taken-down, yanked or deleted; null: it is live again
    status: str | None
    reason: str
    threat_type: str | None
    severity: str | None


class RevocationEventView(Wire, frozen=True):
    """Versions of one skill that were withdrawn or restored together."""

    #: its moment in milliseconds; several events can have the same
    serial: int
    #: skill.withdrawn, skill.restored or skill.yanked
    type: str
    at: str
    skill: str
    versions: tuple[RevocationStepView, ...]


class RevocationEvents(Wire, frozen=True):
    """Events in the order in which they happened."""

    events: tuple[RevocationEventView, ...]
    #: the serial to go on after
    after: int
    has_more: bool
    #: of the list; it rises by one with each change of it
    serial: int


async def read_list(services: Services, reader: principal.Principal, request: ReadRevocationList) -> bytes:
    """Cached per serial, day and key, which determine its bytes in every process."""
    if services.signing is None:
        raise NotFound("This registry has no signing key, so it signs no revocation list.")
    key = await services.signing.current()
    scope, revoked = await _list_for(reader, request.namespace)
    today = services.kv.now() // DAY_MS
    mark = (scope, revoked.serial, today, key.public.key_id)
    known = services.kept.signed.get(mark) if request.namespace is None else None
    if known is not None:
        return known
    archives = await read_archive_digests(revoked)
    document = make_document(services.settings.registry_name, scope, revoked, archives, services.kv.now())
    sealed = seal(encode_document(document), key, PAYLOAD_TYPE)
    await remember_signer(key.public)
    if request.namespace is None:
        services.kept.signed.put(mark, sealed, len(sealed))
    return sealed


async def _list_for(reader: principal.Principal, namespace: str | None) -> tuple[str, RevokedList]:
    """The name of the list, and its content. Readers of different parts of a namespace have different lists."""
    if namespace is not None:
        form = principal.audiences_of(await principal.namespace_reader(reader, namespace))
        every = namespace_audiences(namespace) | namespace_audiences(namespace.lower())
        own = every if isinstance(form, Everything) else every & form
        scope = f"namespace {' '.join((namespace, *sorted(own)))}"
        revoked = await read_revoked_in(scope, namespace, form)
        # A list that was always empty has the same name in every namespace, so that it reveals nothing.
        return (scope if revoked.skills or revoked.serial != revoked.at else "namespace"), revoked
    is_nobody = reader.account is None and not reader.operator
    bound = "" if reader.namespace is None else f" {reader.namespace}"
    scope = "everybody" if is_nobody else f"accounts{bound}"
    return scope, await read_revoked(scope, principal.audiences_of(await principal.document_reader(reader)))


async def revoked_for(reader: principal.Principal) -> RevokedList:
    return (await _list_for(reader, None))[1]


def find_version(
    skill: PublishedSkill, number: str | None, digest: str | None, content_hash: str | None
) -> VersionRef | None:
    """The version that a client has: by its digest, else by the hash of its SKILL.md, else by its number."""
    contents = [text.removeprefix("sha256:").lower() for text in (digest, content_hash) if text]
    for content in contents:
        found = next(
            (ref for ref in reversed(skill.versions) if content in (ref.digest, ref.content_hash)), None
        )
        if found is not None:
            return found
    return next((ref for ref in skill.versions if ref.number == number), None)


def recall_of(skill: PublishedSkill, ref: VersionRef, blocklist: Blocklist) -> RecallView | None:
    """Why this version should not be used; None if it is live. A blocklist entry counts before the pass that takes the
    version down."""
    hits = blocklist.hits_version(skill, ref)
    instead = None if blocklist.hits_skill(skill) else skill.current_version
    if hits:
        return recall_by_block(hits[0], instead)
    one = find_revoked(skill, ref)
    return None if one is None else recall_by_record(one, instead)


def find_revoked(skill: PublishedSkill, ref: VersionRef) -> RevokedVersion | None:
    return next((one for one in revoked_versions(skill) if one.version == ref.number), None)


def recall_by_block(entry: BlockEntry, instead: str | None) -> RecallView:
    return RecallView(
        RevokedStatus.BLOCKED.value,
        entry.reason,
        iso_time(entry.discovered_at),
        instead,
        entry.threat_type or None,
        entry.severity.value,
    )


def recall_by_record(one: RevokedVersion, instead: str | None) -> RecallView:
    since, threat_type = iso_time(one.since) if one.since else None, one.threat_type or None
    return RecallView.of(one, since=since, replacement=instead, threat_type=threat_type)


async def find_revoked_content(reader: principal.Principal, content: str) -> RevokedVersion | None:
    """A version whose content is bad, by its digest or by the hash of its SKILL.md."""
    wanted = content.removeprefix("sha256:").lower()
    every = (one for own in (await revoked_for(reader)).skills.values() for one in own)
    hits = (one for one in every if wanted in (one.digest, one.content_hash))
    return next((one for one in hits if revokes_content(one)), None)


async def follow(reader: principal.Principal, request: FollowRevocations) -> RevocationEvents:
    """Events of one millisecond are in one answer. Hidden events are skipped, so that they change nothing in the
    answer."""
    found: list[Revocation] = []
    place = await find_serial(request.after)
    while len(found) <= MOST_EVENTS or found[MOST_EVENTS - 1].at == found[-1].at:
        page = await list_revocations(place)
        if not page:
            break
        found += await _readable(reader, page)
        place = page[-1].serial
    last = found[min(len(found), MOST_EVENTS) - 1].at if found else request.after
    views = tuple(view for one in found if one.at <= last for view in event_views(one))
    has_more = bool(found) and found[-1].at > last
    return RevocationEvents(views, last, has_more, (await revoked_for(reader)).serial)


async def recent_events(reader: principal.Principal, after: int = 0) -> tuple[RevocationEventView, ...]:
    first, end = await find_serial(after), await read_serial()
    found: list[Revocation] = []
    while end > first and len(found) < MOST_EVENTS:
        begin = max(first, end - PAGE)
        found[:0] = await _readable(reader, await list_revocations(begin, end - begin))
        end = begin
    return tuple(view for one in reversed(found[-MOST_EVENTS:]) for view in reversed(event_views(one)))


async def _readable(reader: principal.Principal, events: Sequence[Revocation]) -> list[Revocation]:
    """The events about skills that readers of this document may read now."""
    form = principal.audiences_of(await principal.document_reader(reader))
    skills = await read_skills({one.skill for one in events if one.steps}, audiences=form)
    return [one for one in events if one.steps and one.skill in skills]


def event_views(event: Revocation) -> tuple[RevocationEventView, ...]:
    """One view for each kind of change in the commit."""
    return tuple(
        RevocationEventView.of(
            event,
            serial=event.at,
            type=kind.value,
            versions=tuple(
                RevocationStepView.of(step, threat_type=step.threat_type or None) for step in steps
            ),
        )
        for kind, steps in steps_by_kind(event).items()
    )


READ_LIST = action_for(
    read_list,
    skills_calls.READ_LIST,
    route_by_hand=True,
    right=principal.Right.READER,
    errors=(NotFound,),
    media=ENVELOPE_TYPE,
    summary="Read the signed list of withdrawn versions",
    command="verify",
)
FOLLOW = action(
    follow,
    "revocation.follow",
    "/api/v1/revocations",
    method="GET",
    right=principal.Right.READER,
    keep=Keep.BY_TAG,
    summary="Follow which versions are withdrawn and restored",
    about="Ask again with `after` from the last answer. Events about skills that you may not read are left out.",
    command="",
)
