"""Hand-ins: what one request submitted, at `hand_in:{id}`, so that its page can be reloaded and shared.

The record holds intake's answer for each skill. The submissions themselves hold the current state, and decide who may
read it. Its id cannot be guessed, and it expires after 90 days; the submissions stay.
"""

import msgspec

from vskill_core.errors import StoreUnavailable
from vskill_platform.domain import keys
from vskill_platform.domain.audience import Audiences
from vskill_platform.domain.submissions.submission import EntryPoint, Submission
from vskill_platform.records import Skips, audience_of, persist, read_record, readable
from vskill_platform.worker_context import require_env

KEPT_MS = 90 * 24 * 3_600_000


class HandedIn(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one skill at the door."""

    #: as clients are told: `created`, `duplicate`, ..., or `refused` where nothing was written
    outcome: str
    #: None where nothing was written
    submission_id: str | None = None
    repo_url: str = ""
    skill_path: str = ""
    #: why it was refused or blocked, and what to do about it
    reason: str = ""


class HandIn(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `hand_in:{id}`."""

    id: str
    created_at: int
    skills: tuple[HandedIn, ...]
    source: EntryPoint = EntryPoint.API
    #: The account that submitted it; None is nobody who signed in, or the operator.
    submitter: str | None = None
    #: Submitted by nobody in particular: then everybody who knows the id may read what was refused.
    anonymous: bool = False


async def keep_hand_in(
    skills: tuple[HandedIn, ...], *, source: EntryPoint, submitter: str | None, anonymous: bool
) -> HandIn:
    """Write a new one."""
    env = require_env("kv")
    made = HandIn(env.clock.new_id(), env.kv.now(), skills, source, submitter, anonymous)
    await persist(lambda: env.kv.put(keys.hand_in(made.id), msgspec.json.encode(made), ttl_ms=KEPT_MS))
    return made


async def read_hand_in(hand_in_id: str) -> HandIn | None:
    return (await read_record(keys.hand_in(hand_in_id), HandIn))[0]


async def read_submissions_of(hand_in: HandIn, *, audiences: Audiences) -> dict[str, Submission]:
    """By id, the submissions that these audiences may read. Raises StoreUnavailable if a read fails, because the counts
    would be wrong without it."""
    env = require_env("kv")
    wanted = [keys.sub(skill.submission_id) for skill in hand_in.skills if skill.submission_id is not None]
    skips = Skips("read_submissions_of")
    settled = await env.kv.get_many(wanted)
    skips.failed(settled.failed)
    # A record without a valid audience is malformed for every reader.
    shown = (
        entry for entry in settled.found.values() if audience_of(entry) is None or readable(entry, audiences)
    )
    records = skips.decode_all(shown, Submission)
    skips.report(env)
    if skips.count:
        raise StoreUnavailable("Not every submission of this hand-in can be read now.", hand_in=hand_in.id)
    return {record.id: record for record in records}
