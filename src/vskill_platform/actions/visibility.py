"""Who sees what. Which skills a reader may read is a set of audiences, which every read of skills passes to its query.
Of a submission, its place, state, history and reasons are public; who submitted it, which account acted and which
machine worked on it are shown to that account and to reviewers (E6)."""

import msgspec

from vskill_platform.actions.principal import Principal
from vskill_platform.domain.audience import PUBLIC_ONLY, Audiences
from vskill_platform.domain.submission import Submission


class Viewer(msgspec.Struct, frozen=True):
    """What decides which names a principal sees."""

    account: str | None = None
    reviewer: bool = False

    def sees_private(self, record: Submission) -> bool:
        """Whether it may know who submitted this one."""
        return self.reviewer or (self.account is not None and self.account == record.submitter)

    def actor(self, actor: str) -> str:
        """An actor of the history as this viewer may know it."""
        kind, _, name = actor.partition(":")
        if not name or self.reviewer or (kind == "user" and name == self.account):
            return actor
        return _KINDS.get(kind, kind)

    def submitter(self, record: Submission) -> str | None:
        """Who submitted it; None is nobody who was signed in, or not for this viewer to know."""
        return record.submitter if self.sees_private(record) else None

    def worker(self, record: Submission) -> str | None:
        """The worker that holds it, or None."""
        return (
            None
            if record.claim is None
            else self.actor(f"worker:{record.claim.worker}").removeprefix("worker:")
        )


#: What strangers learn of an actor.
_KINDS = {"user": "its submitter", "admin": "a reviewer", "worker": "a worker"}

ANYBODY = Viewer()
#: Whoever can read the store itself, as commands do.
OPERATOR = Viewer(reviewer=True)


def viewer_for(principal: Principal) -> Viewer:
    return Viewer(principal.account, principal.is_reviewer)


def audiences_of(reader: Principal) -> Audiences:  # noqa: ARG001 - every reader has the same, until skills can be private
    """The audiences whose skills this reader may read."""
    return PUBLIC_ONLY
