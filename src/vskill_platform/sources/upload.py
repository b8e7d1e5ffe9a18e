"""Uploads: their bytes were kept by content digest before any record named them."""

from vskill_core.errors import SourceGone
from vskill_platform.domain.operation.damage import verified_files
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.blobs.contract import Blobs
from vskill_platform.sources.contract import Fetched


class UploadSource:
    """Reads a submission's upload back from the blob store."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    async def fetch(self, submission: Submission) -> Fetched:
        """Raises BlobUnavailable where the blob store is down, ContentDamaged where the bytes are not there or not
        whole: that is not the submitter's fault."""
        if submission.upload is None:
            raise SourceGone(f"{submission.repo_url} is not an upload, and no other source is configured")
        return Fetched(verified_files(await self._blobs.get(submission.upload), submission.upload))
