"""What the tests of stored content do again and again."""

from tests.support.envs import run_until_quiet, skill_files
from tests.support.system_reads import get_submission
from vskill_platform.domain.operation.task import Task
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.intake.submit import submit_upload
from vskill_platform.store.stored_content import REPAIR
from vskill_platform.store.tasks import read_task
from vskill_platform.worker_context import Env


async def uploaded(name: str, text: str = "") -> Submission:
    """A submission by upload, as intake left it."""
    done = await submit_upload(skill_files(name, text), namespace="ann", slug=name)
    assert done.submission is not None
    return done.submission


async def published_upload(env: Env, name: str, text: str = "") -> str:
    """The digest of a skill that was uploaded and published."""
    submission = await uploaded(name, text)
    await run_until_quiet(env)
    return await published_digest(submission.id)


async def published_digest(submission_id: str) -> str:
    record = await get_submission(submission_id)
    assert record.state is State.PUBLISHED
    assert record.digest is not None
    return record.digest


async def repair_task(digest: str) -> Task:
    task, _ = await read_task(REPAIR, digest)
    assert task is not None
    return task
