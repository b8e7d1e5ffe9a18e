"""`python -m bench.signal_holds FOLDER`: publish the skills of a folder laid out as OWNER/NAME, in that order, into a
new store by the product's own pipeline, and count what the registry's signals send to a reviewer.

What is held is not published, as in a registry whose reviewer has not come yet. The first skills are not counted: a
registry that is empty knows nothing.
"""

from collections import Counter
from pathlib import Path

import click
import msgspec

from bench.command import console
from bench.scale import FULL
from bench.workshop import open_workshop
from vskill_platform.bootstrap import env_for
from vskill_platform.cli.process import run_async
from vskill_platform.domain.audience import EVERYTHING
from vskill_platform.domain.content import SkillFile
from vskill_platform.domain.errors import PlatformError
from vskill_platform.domain.states import State
from vskill_platform.domain.submission import Submission
from vskill_platform.env import Env
from vskill_platform.intake.submit import SubmittedBy, submit_upload
from vskill_platform.queue.consumer import handle_submission_queue
from vskill_platform.settings import Settings
from vskill_platform.submission_store import get_submission
from vskill_platform.worker_context import run_with_worker_env

#: Skills that only fill the registry.
NOT_COUNTED = 200
#: Together the signals may hold so many of what is published after those.
MOST_HELD = 0.03


class HeldSkill(msgspec.Struct, frozen=True):
    """A skill that would have been published, if the registry knew nothing."""

    name: str
    counted: bool
    kinds: tuple[str, ...]
    reason: str


class HoldCount(msgspec.Struct, frozen=True):
    """What came of a folder."""

    submitted: int
    published: int
    refused: int
    #: by rules, the manifest or the size of a skill
    held_otherwise: int
    held: tuple[HeldSkill, ...]
    #: of those that came after the first
    counted: int

    @property
    def share(self) -> float:
        return sum(one.counted for one in self.held) / self.counted if self.counted else 0.0

    def by_kind(self) -> Counter[str]:
        return Counter(kind for one in self.held if one.counted for kind in one.kinds)


async def count_holds(folder: Path, store: Path, not_counted: int = NOT_COUNTED) -> HoldCount:
    """Publish the folder's skills one after the other."""
    settings = Settings(
        data_dir=str(store.parent), store=f"sqlite:{store}", blobs="memory:", rate_limits="off"
    )
    skills = [skill for owner in _folders(folder) for skill in _folders(owner)]
    states: Counter[State] = Counter()
    held: list[HeldSkill] = []
    refused = 0
    async with env_for(settings) as env:
        for number, skill in enumerate(skills):
            record = await _publish(env, skill)
            if record is None:
                refused += 1
                continue
            states[record.state] += 1
            doubts = [one for one in record.evidence.noticed if one.holds] if record.evidence else []
            if (
                record.state is State.NEEDS_REVIEW
                and doubts
                and not (record.decision and record.decision.rule_ids)
            ):
                name = f"{skill.parent.name}/{skill.name}"
                kinds = tuple(one.kind.value for one in doubts)
                reason = "; ".join(one.reason for one in doubts)
                held.append(HeldSkill(name, number >= not_counted, kinds, reason))
    published = states[State.PUBLISHED]
    otherwise = sum(states.values()) - published - len(held)
    return HoldCount(
        len(skills), published, refused, otherwise, tuple(held), max(len(skills) - not_counted, 0)
    )


async def _publish(env: Env, skill: Path) -> Submission | None:
    files = _read_files(skill)
    by = SubmittedBy(None, EVERYTHING)
    try:
        done = await run_with_worker_env(
            env, lambda: submit_upload(files, namespace=skill.parent.name, slug=skill.name, by=by)
        )
    except PlatformError:
        return None
    if done.submission is None:
        return None
    wanted = done.submission.id
    while batches := await env.broker.receive(env.settings.max_batch_size, 0, 1):
        for batch in batches:
            await handle_submission_queue(batch, env)
            await batch.ack_all()
    return await run_with_worker_env(env, lambda: get_submission(wanted, audiences=EVERYTHING))


def _read_files(skill: Path) -> tuple[SkillFile, ...]:
    return tuple(
        SkillFile(path.relative_to(skill).as_posix(), "100644", path.read_bytes())
        for path in sorted(skill.rglob("*"))
        if path.is_file() and not path.is_symlink()
    )


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir())


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(*, folder: Path) -> None:
    """Count the holds per signal; end with 1 where they are too many."""
    out = console()
    with open_workshop(FULL, out.print) as workshop:
        found = run_async(count_holds(folder, workshop.new_file()))
    out.print(
        f"{found.submitted} submitted, {found.published} published, {found.refused} refused at the door, "
        f"{found.held_otherwise} held or failed otherwise"
    )
    for one in found.held:
        out.print(
            f"{'' if one.counted else '(not counted) '}{one.name}: {', '.join(one.kinds)}: {one.reason}"
        )
    for kind, count in sorted(found.by_kind().items()):
        out.print(f"{kind}: {count} of {found.counted}")
    out.print(
        f"together {found.share:.1%} of {found.counted} after the first {NOT_COUNTED}, at most {MOST_HELD:.0%}"
    )
    raise SystemExit(0 if found.share <= MOST_HELD else 1)


if __name__ == "__main__":
    main()
