"""Following submissions to their ends: steps as they are written where there is one, a count of how far they are where
there are many, and at the end a block per skill that says what became of it and what to do.
"""

import time
from collections import Counter
from collections.abc import Sequence

import click

from vskill_client.destination import Caller
from vskill_client.output import StatusLine, plain, show_text_time
from vskill_client.submit_outcomes import explain, print_explanation, print_grounds
from vskill_client.wire.submissions import (
    RUNS,
    SHOW,
    SubmissionRequest,
    SubmissionRuns,
    SubmissionView,
)
from vskill_core.plural import counted

#: How often the records are looked at.
LOOK_EVERY_S = 0.2
#: A registry elsewhere is asked less often.
ASK_EVERY_S = 1.0
#: After so long without a step of any, it is worth saying that perhaps nobody works the queue.
QUIET_S = 10.0
_NOBODY = (
    "Nothing has moved for 10 s. Is a server or a worker running? "
    "Ctrl-C stops watching; what was submitted stays on the queue."
)


async def follow_all(caller: Caller, views: Sequence[SubmissionView], *, quiet: bool) -> list[SubmissionView]:
    """Each as it ended, in the order given."""
    watch = _Watch(caller, views, quiet=quiet)
    with StatusLine("waiting for a worker", quiet=quiet) as status:
        return await watch.to_the_end(status)


async def print_ends(caller: Caller, titled: Sequence[tuple[str, SubmissionView]]) -> None:
    """A block for each, those that need attention last, where the eye is. A single one's steps were shown as they were
    written, so only what they rest on is added."""
    if len(titled) == 1:
        print_grounds(await explain(caller, titled[0][1], titled[0][0]))
        return
    ordered = sorted(titled, key=lambda one: one[1].state != "PUBLISHED")
    for title, record in ordered:
        click.echo()
        print_explanation(await explain(caller, record, title))
    click.echo()
    click.echo(plain(tally([record for _, record in titled])))


def tally(records: Sequence[SubmissionView]) -> str:
    """`6 skills: 1 PUBLISHED, 2 REJECTED, …`, by how often."""
    counts = Counter(record.state for record in records)
    return f"{counted(len(records), 'skill')}: " + ", ".join(
        f"{count} {state}" for state, count in counts.most_common()
    )


class _Watch:
    """The records that are followed, and what was said about them."""

    def __init__(self, caller: Caller, records: Sequence[SubmissionView], *, quiet: bool) -> None:
        self._caller = caller
        self._records = list(records)
        self._quiet = quiet
        self._shown = [0] * len(records)
        self._moved_at = time.monotonic()
        self._warned = quiet

    async def to_the_end(self, status: StatusLine) -> list[SubmissionView]:
        import asyncio

        while True:
            for index in range(len(self._records)):
                await self._look(index, status)
            open_ones = [record for record in self._records if not _is_over(record)]
            if not open_ones:
                return self._records
            self._tell_progress(status, open_ones)
            await asyncio.sleep(ASK_EVERY_S if self._caller.registry else LOOK_EVERY_S)

    async def _look(self, index: int, status: StatusLine) -> None:
        before = self._records[index]
        if self._shown[index] and _is_over(before):
            return
        record = await _read_run(self._caller, before.id, before.run)
        for event in record.history:
            if event.seq > self._shown[index]:
                self._moved_at = time.monotonic()
                self._shown[index] = event.seq
                if not self._quiet and len(self._records) == 1:
                    status.hide()
                    click.echo(plain(f"  {show_text_time(event.at)}  {event.to:<15} {event.reason}"))
        self._records[index] = record

    def _tell_progress(self, status: StatusLine, open_ones: list[SubmissionView]) -> None:
        if not self._warned and time.monotonic() - self._moved_at > QUIET_S:
            self._warned = True
            status.hide()
            click.echo(_NOBODY, err=True)
        if len(self._records) == 1:
            status.update(open_ones[0].meaning)
            return
        done = len(self._records) - len(open_ones)
        counts = Counter(record.meaning for record in open_ones)
        rest = ", ".join(f"{count} {meaning}" for meaning, count in counts.items())
        status.update(f"{done} of {len(self._records)} decided; {rest}")


def _is_over(view: SubmissionView) -> bool:
    """Whether no worker owes its run anything."""
    return view.category not in {"waiting", "running"}


async def _read_run(caller: Caller, submission_id: str, run: int) -> SubmissionView:
    """The run that is followed, also when another one has begun since."""
    shown = await caller.call(SHOW, SubmissionRequest(submission_id=submission_id))
    if shown.run == run:
        return shown
    found = await caller.call(RUNS, SubmissionRuns(submission_id=submission_id, limit=20))
    return next((one for one in found.runs if one.run == run), shown)
