"""Who sees what. What a reader may read is a set of audiences, which every read passes to its query; `resolve` finds it
out once, from the namespaces as they are then. Of a submission that one may read, its place, state, history and reasons
are shown; who submitted it, which account acted and which machine worked on it only to that account and to reviewers
(E6)."""

import msgspec

from vskill_core.errors import NotSignedIn
from vskill_platform.actions.principal import Principal
from vskill_platform.domain.audience import INTERNAL, Audiences, Everything, may_read
from vskill_platform.domain.people.namespace import (
    Directory,
    Reader,
    audiences,
    common_audiences,
    internal_form,
    namespace_audiences,
    public_form,
)
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.env import Env
from vskill_platform.store.people.namespaces import read_directory


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
    return msgspec.structs.replace(principal, audiences=audiences_in(principal, await read_directory()))


def audiences_in(principal: Principal, directory: Directory) -> Audiences:
    """What it may read by this directory."""
    return audiences(Reader(principal.account, principal.is_reviewer, principal.namespace), directory)


def require_entry(principal: Principal) -> None:
    """Raise NotSignedIn where the registry lets in accounts only, and this is none."""
    if principal.account is None and audiences_of(principal) == frozenset():
        raise NotSignedIn


def audiences_of(reader: Principal) -> Audiences:
    """The audiences whose records this reader may read."""
    if reader.audiences is None:
        raise TypeError("what this reader may read was not found out: call resolve first")
    return reader.audiences


# Forms: what several readers are given alike.


async def document_reader(reader: Principal) -> Principal:
    """The reader as documents about the whole registry know it: they have two forms, one for readers who did not
    sign in and one for all others, so that nobody's memberships show in them."""
    directory = await read_directory()
    is_nobody = reader.account is None and not reader.operator
    return _narrow(reader, public_form(directory) if is_nobody else internal_form(directory))


async def public_reader(reader: Principal) -> Principal:
    """The reader as somebody who did not sign in, or in an internal registry as an account without memberships."""
    directory = await read_directory()
    return _narrow(reader, public_form(directory) or internal_form(directory))


async def common_reader(reader: Principal, audience: str) -> Principal:
    """The reader without what it has beyond all other readers of an audience: what is made for them holds only what
    each of them may read."""
    return _narrow(reader, common_audiences(audience, await read_directory()))


async def namespace_reader(reader: Principal, name: str) -> Principal:
    """The reader as the documents of one namespace know it: what everybody has whom the registry lets in, and of that
    namespace what the reader has.

    Accounts read short names in their internal form also while the namespace is not managed: the first time that it is
    renames nothing for them."""
    directory = await read_directory()
    own = namespace_audiences(name) | namespace_audiences(name.lower()) | {INTERNAL}
    return _narrow(reader, own | (public_form(directory) or internal_form(directory)))


def _narrow(reader: Principal, form: frozenset[str]) -> Principal:
    own = audiences_of(reader)
    return msgspec.structs.replace(reader, audiences=form if isinstance(own, Everything) else own & form)


def shares_form(services: Env, reader: Principal) -> bool:
    """Whether the reader may read what those may who did not sign in, or what an account without memberships may: then
    an answer that was made for one of them is kept for all. What a process has not read is shared with nobody."""
    known = services.kept.directory
    return known is not None and audiences_of(reader) in (public_form(known[1]), internal_form(known[1]))


def reads_as_public(services: Env, reader: Principal) -> bool:
    """Whether those who did not sign in may read the same."""
    known = services.kept.directory
    return known is not None and audiences_of(reader) == public_form(known[1])


def needs_token(services: Env, audience: str) -> bool:
    """Whether a program must say who it is to read a record of this audience. What a process has not read is taken for
    hidden."""
    known = services.kept.directory
    return known is None or not may_read(audience, public_form(known[1]))
