"""Submissions as the system reads them, for tests that look at what became of one: whoever may read it."""

from vskill_platform import submission_store
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.submission import Submission


async def get_submission(submission_id: str) -> Submission:
    return await submission_store.get_submission(submission_id, audiences=EVERYTHING)


async def get_run(submission_id: str, run: int) -> Submission:
    return await submission_store.get_run(submission_id, run, audiences=EVERYTHING)
