"""What a change of visibility would hide or show, counted before anybody makes it: for readers who did not sign in, and
for accounts that are members of nothing. Both are asked of the one rule, `domain.people.namespace.audiences`."""

from vskill_client.wire.base import Wire
from vskill_platform.domain.audience import EVERYTHING, PUBLIC
from vskill_platform.domain.people.namespace import (
    Directory,
    Namespace,
    audience_for,
    internal_form,
    public_form,
)
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.ledger.kv.collections import SKILLS, SUBMISSIONS
from vskill_platform.records import decode
from vskill_platform.store.recall.first_management import public_skills_in, public_submissions_in
from vskill_platform.store.skills.catalogue import list_skills
from vskill_platform.store.skills.collections import list_collections
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
    """What changes when the directory does, and no record."""
    previews = []
    for form in _FORMS:
        gone, come = form(before) - form(after), form(after) - form(before)
        previews.append(ReadersPreview(await _count(gone), await _count(come)))
    return ReachPreview(*previews)


async def preview_managing(before: Directory, after: Directory, name: str) -> ReachPreview:
    """What changes when a namespace is managed for the first time: its records get its audience."""
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
    """What there is of these audiences, by counts that the store keeps."""
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
    """What there is in a namespace whose records have no audience of their own yet."""
    found = [decode(entry, PublishedSkill) async for entry in public_skills_in(name)]
    live = [one.canonical for one in found if not one.withdrawn]
    submissions = sum([1 async for _ in public_submissions_in(name)])
    collected = (await _collected()).intersection(live)
    return ReachChange(len(live), submissions, len(collected), tuple(live[:MOST_NAMES]))


async def _collected() -> set[str]:
    """The skills of all collections."""
    return {skill for one in (await list_collections(audiences=EVERYTHING)).items for skill in one.skills}
