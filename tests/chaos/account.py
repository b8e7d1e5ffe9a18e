"""The account of a run: what was promised, what became of it, and how long each fault was felt.

Every submission that was accepted has ended or waits for a person; none is lost, none was published twice, and queue
health is empty within a minute of each fault's end.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from tests.chaos.load import Load
from tests.incidents.steps import check_history
from tests.support.system_reads import get_run, get_submission
from vskill_core.errors import NotFound, PlatformError
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.queue.health import queue_health
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.submission_store import count_submissions

#: Within this long of a fault's end, queue health is empty; of the last one, nothing is owed.
QUIET_WITHIN_S = 60.0
#: Between two looks at queue health.
LOOK_EVERY_S = 0.5


class Played(NamedTuple):
    """A fault that was played, and when."""

    name: str
    began: float
    ended: float


class Felt(msgspec.Struct, frozen=True):
    """One kind of fault, and the longest that it was felt, in seconds from its end."""

    times: int
    #: Until a client's submission was accepted.
    accepted_again_s: float
    #: Until queue health was read and empty, without the time that later faults lasted: one that nobody meets for
    #: minutes, as on a busy machine, keeps health from being empty for as long.
    healthy_s: float
    #: Until everything that had been accepted by then had ended; other faults went on meanwhile.
    caught_up_s: float


class Account(msgspec.Struct, frozen=True):
    """What came of it."""

    seconds: float
    seed: int
    faults: dict[str, Felt]
    #: Processes that were killed or found their store away at the start, and were started again.
    started_again: int
    accepted: int
    #: Refused with the typed error, by its code; the submitter knows.
    refused: dict[str, int]
    #: Requests whose connection broke.
    unheard: int
    #: Submissions that were made though the answer did not say so.
    made_unheard: int
    states: dict[str, int]
    #: Attempts that ended with their worker.
    interrupted: int
    #: From the last fault until nothing was owed.
    quiet_after_s: float
    #: Runs that ended in each second under faults.
    per_second: float
    #: From acceptance to the end of the run.
    median_s: float
    worst_s: float


class Watch:
    """Looks at queue health again and again, and notes when it was empty."""

    def __init__(self) -> None:
        self.empty_at: list[float] = []

    async def run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(LOOK_EVERY_S)

    async def look(self) -> bool:
        """Whether nothing is owed any more; False also where nobody can say."""
        try:
            health = await queue_health()
        except PlatformError:
            return False
        if not health.violations:
            self.empty_at.append(time.time())
        return not health.violations and health.counts.active == 0


async def take_account(
    load: Load,
    watch: Watch,
    played: Sequence[Played],
    *,
    seconds: float,
    seed: int,
    quiet_after_s: float,
    started_again: int,
) -> Account:
    """Check everything, or fail with what is wrong."""
    promised = [await get_submission(number) for number in load.accepted]
    others = await _found(sorted(load.doubtful))
    for record in (*promised, *others):
        await check(record)
    assert (await count_submissions(audiences=EVERYTHING)).total == len(promised) + len(others)
    took = sorted((one.updated_at - one.created_at) / 1000 for one in promised)
    faults = _felt(load, watch, played, {one.id: one.updated_at / 1000 for one in promised})
    for name, felt in faults.items():
        assert felt.healthy_s < QUIET_WITHIN_S, (name, felt)
    return Account(
        seconds=round(seconds, 1),
        seed=seed,
        faults=faults,
        started_again=started_again,
        accepted=len(promised),
        refused=dict(sorted(load.refused.items())),
        unheard=load.unheard,
        made_unheard=len(others),
        states=dict(sorted(Counter(one.state.value for one in promised).items())),
        interrupted=sum(one.attempts.interrupted for one in promised),
        quiet_after_s=round(quiet_after_s, 1),
        per_second=round(len(promised) / (seconds + quiet_after_s), 2),
        median_s=round(took[len(took) // 2], 2),
        worst_s=round(took[-1], 2),
    )


async def _found(numbers: Sequence[str]) -> list[Submission]:
    found = []
    for number in numbers:
        try:
            found.append(await get_submission(number))
        except NotFound:
            continue
    return found


async def check(record: Submission) -> None:
    """It ended, or waits for a person; its history has no gap; what it published, it published once."""
    assert record.state.terminal or record.state is State.NEEDS_REVIEW, (record.id, record.state)
    runs = [await get_run(record.id, number) for number in range(1, record.run + 1)]
    for run in runs:
        check_history(run)
        published = [event for event in run.history if event.to is State.PUBLISHED]
        assert len(published) <= 1, f"{record.id} was published twice"
    if record.state is State.PUBLISHED:
        assert record.published is not None
        skill = await get_skill(record.published.removeprefix("skill:"))
        assert len(skill.versions) == 1, f"{skill.canonical} has two versions of one content"
        assert skill.current_digest == record.digest


def _felt(load: Load, watch: Watch, played: Sequence[Played], ended: dict[str, float]) -> dict[str, Felt]:
    by_name: dict[str, list[float]] = defaultdict(list)
    for one in played:
        by_name[one.name].append(one.ended)
    return {
        name: Felt(
            times=len(times),
            accepted_again_s=max(_next_accepted(load, one) for one in times),
            healthy_s=max(_healthy_after(watch.empty_at, played, one) for one in times),
            caught_up_s=max(_caught_up(load, ended, one) for one in times),
        )
        for name, times in sorted(by_name.items())
    }


def _next_accepted(load: Load, end: float) -> float:
    """Until the first answer to what was sent after the fault; 0 where nothing was, since the run was over."""
    answers = [answered for sent, answered in load.accepted.values() if sent >= end]
    return round(min(answers) - end, 1) if answers else 0.0


def _healthy_after(empty_at: Sequence[float], played: Sequence[Played], end: float) -> float:
    healthy = min((one for one in empty_at if one >= end), default=float("inf"))
    later = (min(healthy, one.ended) - one.began for one in played if end <= one.began < healthy)
    return round(healthy - end - sum(later), 1)


def _caught_up(load: Load, ended: dict[str, float], end: float) -> float:
    owed = [ended[number] for number, (_, answered) in load.accepted.items() if answered <= end]
    return round(max(0.0, max(owed, default=end) - end), 1)
