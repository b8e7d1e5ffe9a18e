"""Steps that several incidents share: submitting places, waiting, and reading what became of them."""

import asyncio
import itertools
from collections.abc import Sequence

from tests.support.envs import active_env, run_until_quiet, skill_files, submit_skill
from tests.support.faults import ListedSources
from tests.support.manual_clock import ManualClock
from tests.support.patience import PATIENCE_S
from tests.support.system_reads import get_submission
from vskill_core.content import SkillFile
from vskill_core.findings import ScanStatus, StaticReport
from vskill_core.identity import normalise
from vskill_platform.domain import keys
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.intake.submit import Submitted, submit_repository
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.worker_context import Env


class UnfinishedScanner:
    """A scanner that did not get to the end, so a person must look."""

    ruleset = "test"

    async def scan(self, files: Sequence[SkillFile]) -> StaticReport:
        return StaticReport(self.ruleset, ScanStatus.TIMED_OUT, problem="too slow")


def pass_time(env: Env, ms: int) -> None:
    """Move the clock that the test owns."""
    assert isinstance(env.clock, ManualClock)
    env.clock.advance(ms)


def record_of(submitted: Submitted) -> Submission:
    assert submitted.submission is not None
    return submitted.submission


async def submit_place(sources: ListedSources, url: str, path: str, name: str, body: str = "") -> Submission:
    """A repository that holds this skill at this path, submitted."""
    sources.places[normalise(url, path).key] = skill_files(name, body)
    return record_of(await submit_repository(url, path))


async def awaiting_review(env: Env, name: str) -> Submission:
    """A submission of stored bytes that a person must decide about."""
    submitted = record_of(await submit_skill(name))
    with active_env(env, scanner=UnfinishedScanner()) as failing:
        await run_until_quiet(failing)
    record = await get_submission(submitted.id)
    assert record.state is State.NEEDS_REVIEW
    return record


async def published(submission: Submission) -> PublishedSkill:
    """The skill that a submission says it is, by its stored key."""
    record = await get_submission(submission.id)
    assert record.state is State.PUBLISHED, record.history[-1]
    assert record.published is not None
    return await get_skill(record.published.removeprefix(keys.skill.prefix))


async def until_state(submission_id: str, state: State, seconds: float = PATIENCE_S) -> Submission:
    """Wait until a record is there."""
    async with asyncio.timeout(seconds):
        # The store tells nobody in this process; a look every few milliseconds is cheap enough for a test.
        while (record := await get_submission(submission_id)).state is not state:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    return record


async def all_keys(env: Env, prefix: str = "") -> list[str]:
    """Every key, to the end."""
    found: list[str] = []
    after: str | None = None
    while True:
        page = await env.kv.list(prefix, after=after)
        found.extend(page.items)
        after = page.after
        if after is None:
            return found


def check_history(record: Submission) -> None:
    """Gapless, in order of time, each step where the last one ended, each with a reason, and ending in the state."""
    events = record.history
    assert [event.seq for event in events] == list(range(events[0].seq, events[0].seq + len(events)))
    assert [event.at for event in events] == sorted(event.at for event in events)
    assert all(after.source is before.to for before, after in itertools.pairwise(events))
    assert all(event.reason.strip() and event.actor.strip() for event in events)
    assert len({event.id for event in events}) == len(events)
    assert events[-1].to is record.state
    assert events[0].source is None or record.run > 1
