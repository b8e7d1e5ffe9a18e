"""Who sees what of a submission. Its place, state, history and reasons are public; who submitted it, which account
did something and which machine worked on it are for that account and for reviewers (E6)."""

import msgspec
from starlette.requests import Request

from vskill_platform.domain.submission import Submission
from vskill_platform.web.principal import Guard, principal_of


class Viewer(msgspec.Struct, frozen=True):
    """As far as it matters for what is shown."""

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
        """Who submitted it; None is nobody who was signed in, or none of this viewer's business."""
        return record.submitter if self.sees_private(record) else None

    def worker(self, record: Submission) -> str | None:
        """Who holds it; None is nobody."""
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


def viewer_of(request: Request) -> Viewer:
    principal = principal_of(request)
    return Viewer(principal.account, principal.may(Guard.REVIEWER))
