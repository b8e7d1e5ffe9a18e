"""Submissions in quantity, as the product itself would have written them."""

from collections.abc import Iterator

import msgspec

from vskill_core.identity import Identity
from vskill_platform.domain.submissions import attempts, submission
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Step, Submission
from vskill_platform.ledger.kv.entries import Put

#: Later than any run of a benchmark: what was changed then is not stuck.
_FRESH_MS = 24 * 3_600_000


def submission_puts(count: int, stuck: int, now: int) -> Iterator[Put]:
    """`count` submissions: `stuck` of them active and unchanged for an hour, one in 100 active and fresh,
    the others PUBLISHED."""
    *waiting, published = _drafts(now)
    every = max(count // max(stuck, 1), 1)
    for number in range(count):
        is_stuck = number % every == 0 and number // every < stuck
        if is_stuck:
            record, changed = waiting[number // every % 2], now - 3_600_000 - number
        elif number % 100 == 1:
            record, changed = waiting[number % 2], now + _FRESH_MS
        else:
            record, changed = published, now - number
        yield _put(record, number, changed)


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


def _drafts(now: int) -> tuple[Submission, Submission, Submission]:
    """One that waits, one that is being scanned and one that was published."""
    created = submission.create(
        submission_id="sub_draft",
        identity=_identity(0),
        repo_url="",
        skill_name="",
        step=Step("event-1", now, "user:someone", "submitted"),
    )
    held = attempts.claim(created, token="token", worker="bench", now=now, event_ids=("event-2", "event-3"))  # noqa: S106
    step = Step("event-4", now, "worker:bench", "the scan is done")
    approved = submission.move(held, State.AUTO_APPROVED, step, digest="0" * 64, commit="0" * 40)
    return (
        created,
        held,
        submission.move(approved, State.PUBLISHED, msgspec.structs.replace(step, event_id="event-5")),
    )
