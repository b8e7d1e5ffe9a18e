"""Chooses the source of a submission by its identity: uploads from the blob store, everything else from git."""

from collections.abc import Collection

from vskill_core.errors import SourceGone, Unsupported
from vskill_core.identity import Identity
from vskill_platform.domain.operation.damage import verified_files
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.blobs.contract import Blobs
from vskill_platform.sources.contract import Fetched, FilesAtHead, Place, RepositoryHead, Survey
from vskill_platform.sources.credential import GitCredential
from vskill_platform.sources.git import GitSource

_NO_GIT = "The git command is not installed here, so repositories cannot be fetched"


class UploadSource:
    """Uploads: their bytes were kept by content digest before any record named them."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    async def fetch(self, submission: Submission) -> Fetched:
        """Raises BlobUnavailable if the blob store is down, ContentDamaged if the bytes are missing or damaged: neither
        is the submitter's fault."""
        if submission.upload is None:
            raise SourceGone(f"{submission.repo_url} is not an upload, and no other source is configured")
        files = verified_files(await self._blobs.get(submission.upload), submission.upload)
        # What came from an upstream was fetched at a commit.
        return Fetched(files, submission.commit)


class SourceRouter:
    """Uploads and repositories. Without git it is the named degraded mode "uploads only"; `problem` says why."""

    def __init__(self, uploads: UploadSource, git: GitSource | None, problem: str = _NO_GIT) -> None:
        self._uploads = uploads
        self._git = git
        #: Why there is no git; empty if there is.
        self.problem = "" if git is not None else problem

    @property
    def has_git(self) -> bool:
        return self._git is not None

    def using(self, credential: GitCredential) -> "SourceRouter":
        git = None if self._git is None else self._git.using(credential)
        return SourceRouter(self._uploads, git, self.problem)

    async def fetch(self, submission: Submission) -> Fetched:
        if submission.identity.is_upload:
            return await self._uploads.fetch(submission)
        if self._git is None:
            raise SourceGone(self._refusal)
        return await self._git.fetch(submission)

    async def inspect(self, identity: Identity, commit: str | None = None) -> Place:
        return await self._require_git().inspect(identity, commit)

    async def survey(self, identity: Identity, commit: str | None = None) -> Survey:
        return await self._require_git().survey(identity, commit)

    async def head(self, identity: Identity) -> RepositoryHead:
        return await self._require_git().head(identity)

    async def look(self, identity: Identity, paths: Collection[str]) -> FilesAtHead:
        return await self._require_git().look(identity, paths)

    async def close(self) -> None:
        if self._git is not None:
            await self._git.close()

    @property
    def _refusal(self) -> str:
        return f"{self.problem.rstrip('.')}; upload the skill instead."

    def _require_git(self) -> GitSource:
        if self._git is None:
            raise Unsupported(self._refusal)
        return self._git
