"""The source contract: the files at a submission's place, now, or a typed reason why not."""

from typing import Protocol

import msgspec

from vskill_platform.domain.content import SkillFile
from vskill_platform.domain.submission import Submission


class Fetched(msgspec.Struct, frozen=True):
    """What stands at the place."""

    files: tuple[SkillFile, ...]
    #: The commit, for sources that have one.
    commit: str | None = None


class Sources(Protocol):
    """Fetches. Raises SourceUnavailable where the host is down (not the content's fault), and NoSkillFound,
    SourceGone or LimitExceeded where no other attempt would end differently."""

    async def fetch(self, submission: Submission) -> Fetched: ...
