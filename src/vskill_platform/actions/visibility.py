"""Who sees what. What a reader may read is a set of audiences, which every read passes to its query; `resolve` finds it
out once, from the namespaces as they are then. Of a submission that one may read, its place, state, history and reasons
are shown; who submitted it, which account acted and which machine worked on it only to that account and to reviewers
(E6)."""

import msgspec

from vskill_platform.actions.principal import Principal
from vskill_platform.domain.audience import Audiences
from vskill_platform.domain.errors import NotSignedIn
from vskill_platform.domain.namespace import Reader, audiences, internal_form, public_form
from vskill_platform.domain.submission import Submission
from vskill_platform.store.namespaces import read_directory


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


async def resolve(principal: Principal) -> Principal:
    """The principal with what it may read now. What was found out before is found out again."""
    directory = await read_directory()
    reader = Reader(principal.account, principal.is_reviewer, principal.namespace)
    return msgspec.structs.replace(principal, audiences=audiences(reader, directory))


def require_entry(principal: Principal) -> None:
    """Raise NotSignedIn where the registry lets in accounts only, and this is none."""
    if audiences_of(principal) == frozenset():
        raise NotSignedIn


def audiences_of(reader: Principal) -> Audiences:
    """The audiences whose records this reader may read."""
    if reader.audiences is None:
        raise TypeError("what this reader may read was not found out: call resolve first")
    return reader.audiences


async def audiences_of_document(reader: Principal) -> frozenset[str]:
    """What a document about the whole registry holds for this reader: there are two forms of it, one for readers who
    did not sign in and one for all others, so that nobody's memberships show in it."""
    directory = await read_directory()
    return (
        public_form(directory) if reader.account is None and not reader.operator else internal_form(directory)
    )
