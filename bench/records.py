"""Records in quantity: submissions and skills as the product itself would have written them."""

from collections.abc import Iterator

import msgspec

from vskill_platform.domain import keys, submission
from vskill_platform.domain.content import FileEntry, digest_of
from vskill_platform.domain.identity import Identity, submission_id
from vskill_platform.domain.skill import Publication, PublishedSkill, SkillVersion, publish_version
from vskill_platform.domain.states import State
from vskill_platform.domain.submission import Step, Submission
from vskill_platform.kv.entries import Put

#: Later than any run of a benchmark: what was changed then is not stuck.
_FRESH_MS = 24 * 3_600_000

#: What a store of some age holds, in 100 records; the rest is PUBLISHED.
_SHARES = (
    (State.REJECTED,) * 6 + (State.TIER1_FAILED,) * 4 + (State.NEEDS_REVIEW, State.BLOCKED, State.DEQUEUED)
)


def submission_puts(count: int, stuck: int, now: int) -> Iterator[Put]:
    """`count` submissions: `stuck` of them active and unchanged for an hour, one in 100 active and fresh."""
    drafts = {state: _draft(state, now) for state in State}
    waiting = (State.RECEIVED, State.TIER1_SCANNING)
    every = max(count // max(stuck, 1), 1)
    for number in range(count):
        is_stuck = number % every == 0 and number // every < stuck
        if is_stuck:
            record, changed = drafts[waiting[number // every % 2]], now - 3_600_000 - number
        elif number % 100 == 1:
            record, changed = drafts[waiting[number % 2]], now + _FRESH_MS
        else:
            record, changed = drafts[_state(number)], now - number
        yield _put(record, number, changed)


def skill_puts(count: int, now: int) -> Iterator[Put]:
    """`count` published skills, each with its alias beside it."""
    draft = draft_skill(now)
    for number in range(count):
        identity = _identity(number)
        canonical = f"owner-{number % 997}/repo-{number}/skill-{number}"
        skill = msgspec.structs.replace(
            draft,
            canonical=canonical,
            identity=identity,
            slug=f"skill-{number}",
            name=f"Skill {number}",
            aliases=(f"skill-{number}",),
            repo_url=identity.url,
            submission=submission_id(identity),
            updated_at=now - number,
        )
        yield Put(keys.skill(canonical), msgspec.json.encode(skill))
        yield Put(keys.alias_key(f"skill-{number}", canonical), b"{}")


def _state(number: int) -> State:
    place = number % 100
    return _SHARES[place] if place < len(_SHARES) else State.PUBLISHED


def _identity(number: int) -> Identity:
    return Identity("github.com", f"owner-{number % 997}", f"repo-{number}", f"skills/skill-{number}")


def _put(draft: Submission, number: int, changed: int) -> Put:
    identity = _identity(number)
    record = msgspec.structs.replace(
        draft,
        # Not the id of the place, which costs a hash: as long, and as little in order.
        id=f"sub_{number * 2654435761 % 2**32:08x}-{number:08x}-5000-8000-000000000000",
        identity=identity,
        repo_url=identity.url,
        skill_name=f"skill-{number}",
        skill_path=identity.path,
        created_at=changed - 1_000,
        updated_at=changed,
        digest=f"{number:064x}" if draft.digest else None,
    )
    return Put(record.key, msgspec.json.encode(record))


def _draft(state: State, now: int) -> Submission:
    """A record that has gone the usual way to this state."""
    created = submission.create(
        submission_id="sub_draft",
        identity=_identity(0),
        repo_url="",
        skill_name="",
        step=Step("event-1", now, "user:someone", "submitted"),
    )
    if state is State.RECEIVED:
        return created
    held = submission.claim(created, token="token", worker="bench", now=now, event_ids=("event-2", "event-3"))  # noqa: S106
    if state is State.TIER1_SCANNING:
        return held
    step = Step("event-4", now, "worker:bench", "the scan is done")
    known = {"digest": "0" * 64, "commit": "0" * 40}
    if state is State.PUBLISHED:
        held = submission.move(held, State.AUTO_APPROVED, step, **known)
        return submission.move(held, state, msgspec.structs.replace(step, event_id="event-5"))
    return submission.move(held, state, step, **known)


def draft_skill(now: int) -> PublishedSkill:
    """A published skill, to be copied with another name."""
    manifest = (FileEntry("SKILL.md", "100644", 1_234, "3" * 64),)
    version = SkillVersion(
        canonical="owner/repo/skill",
        number="",
        name="skill",
        description="Turns a table of measurements into a page that people can read, with its charts. " * 2,
        digest=digest_of(manifest),
        content_hash="1" * 64,
        tree_hash="2" * 64,
        manifest=manifest,
        score=100,
        published_at=now,
        commit="4" * 40,
    )
    place = Identity("github.com", "owner", "repo", "skill")
    publication = Publication(version, place, "worker:bench", place.url, front_matter_version="1.0.0")
    skill, _ = publish_version(None, publication)
    return skill
