"""Uploads: their bytes were kept by content digest before any record named them."""

from vskill_platform.blobs.contract import Blobs
from vskill_platform.domain.content import unpack
from vskill_platform.domain.errors import SourceGone
from vskill_platform.domain.submission import Submission
from vskill_platform.sources.contract import Fetched


class UploadSource:
    """Reads a submission's upload back from the blob store."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    async def fetch(self, submission: Submission) -> Fetched:
        """Raises BlobUnavailable where the blob store is down, SourceGone where the bytes are not there."""
        if submission.upload is None:
            raise SourceGone(f"{submission.repo_url} is not an upload, and no other source is configured")
        data = await self._blobs.get(submission.upload)
        if data is None:
            raise SourceGone("the uploaded bytes are no longer kept; upload the skill again")
        return Fetched(unpack(data, submission.upload))
