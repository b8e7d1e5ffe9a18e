"""Who acts, what they may do and what they may read.

Entry points find out who it is: nobody in particular, an account that signed in, the holder of a token, or the operator
of the server's machine. Rights and audiences are decided here, for every action and every entry point.
"""

import enum

import msgspec

from vskill_core.errors import NotPermitted, NotSignedIn
from vskill_core.identity import Identity
from vskill_platform.domain.people.namespace import (
    INTERNAL,
    PUBLIC,
    Audiences,
    Directory,
    Everything,
    NamespaceRole,
    Reader,
    audiences,
    common_audiences,
    internal_form,
    may_read,
    namespace_audiences,
    namespace_of,
    public_form,
)
from vskill_platform.domain.people.token import ActingToken, CiJob, TokenScope
from vskill_platform.domain.review.own_review import namespaces_reviewed_by
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.namespaces import read_directory
from vskill_platform.store.people.owners import role_at, role_in
from vskill_platform.store.people.readers import OPERATOR as OPERATOR_NAME
from vskill_platform.worker_context import Env


class Principal(msgspec.Struct, frozen=True):
    """The one who acts."""

    #: The account's name; None is nobody who signed in, or the operator.
    account: str | None = None
    #: The account's role, no higher than the scopes of its token allow; None is nobody.
    role: Role | None = None
    #: What its token is limited to, with what its scopes include; None is no limit.
    scopes: frozenset[str] | None = None
    #: The token that was shown; None where there was none.
    token: ActingToken | None = None
    #: How its session was opened: `password`, `setup` or a provider's name; empty where there is none.
    session: str = ""
    #: Whoever can run commands on the server's machine. They hold the store itself, so they may do everything.
    operator: bool = False
    #: Where a request of nobody in particular comes from; tells such requests apart, and is empty elsewhere.
    address: str = ""
    #: The one namespace that its token is bound to; None is no limit.
    namespace: str | None = None
    #: The groups that its account is in, as teams name them.
    groups: frozenset[str] = frozenset()
    #: Its token only reads, because its account has not signed in lately.
    only_reads: bool = False
    #: The CI job that it is: it submits one repository, and has no other right.
    ci: CiJob | None = None
    #: What it may read, found out once per request or call; None until then, and then nothing can be read.
    audiences: Audiences | None = None
    #: The namespaces that review themselves and that it maintains; found out with the audiences.
    reviews: frozenset[str] = frozenset()

    @property
    def actor(self) -> str:
        if self.operator and self.account is None:
            return OPERATOR_NAME
        if self.ci is not None:
            return self.ci.publisher.actor
        if self.account is None:
            return "user:anonymous"
        return f"{'admin' if self.is_reviewer else 'user'}:{self.account}"

    @property
    def name(self) -> str:
        """The account's name, where a right has made sure that there is one."""
        if self.account is None:
            raise TypeError("this action lets anybody in, so there may be no account")
        return self.account

    @property
    def is_reviewer(self) -> bool:
        return self.operator or self.role in {Role.REVIEWER, Role.ADMIN}

    @property
    def is_admin(self) -> bool:
        return self.operator or self.role is Role.ADMIN

    def require_scope(self, scope: TokenScope) -> None:
        """NotPermitted where its token lacks the scope; without a token there is none to lack."""
        if self.ci is not None:
            raise NotPermitted(f"The token of a CI job only submits {self.ci.repository.url}.")
        if self.scopes is not None and scope.value not in self.scopes:
            if self.only_reads:
                message = (
                    f"{self.account} signed in more than a day ago, so its tokens only read; sign in again."
                )
                raise NotSignedIn(message)
            raise NotPermitted(
                f"This token lacks the scope {scope.value!r}.",
                needs=scope.value,
                fix="use one that has it, from your account page",
            )


ANYBODY = Principal()
OPERATOR = Principal(operator=True)


def token_role(scopes: frozenset[str]) -> Role:
    """What a token may do: its scopes are those that its account's role allows now."""
    if TokenScope.ADMIN.value in scopes:
        return Role.ADMIN
    return Role.REVIEWER if TokenScope.REVIEW.value in scopes else Role.AUTHOR


#: How history and audit name somebody who decides in their own namespace: neither a reviewer nor the submitter.
MAINTAINER = "maintainer"


# What a principal may do. A right is checked in two steps: `admit` asks what needs no look at the store (is somebody
# signed in, in which role, with which scope), `require_right` asks about the object (who submitted it, and who controls
# its repository).


class Right(enum.StrEnum):
    """What an action requires of its caller."""

    ANYONE = "anyone"
    #: Whoever may read the object. What one may not read is not found, so nobody else gets as far as the question.
    READER = "reader"
    SIGNED_IN = "signed in"
    #: Whoever submitted it, maintains its repository, or reviews.
    SUBMITTER = "submitter"
    #: An account with any role in the namespace, directly or by a team; reviewers and admins.
    MEMBER = "member"
    #: An account with this role or a higher one in the namespace; one that proved a repository maintains that one.
    MAINTAINER = "maintainer"
    #: An account that owns the namespace, or an admin.
    OWNER = "owner"
    REVIEWER = "reviewer role"
    #: A reviewer; or where a namespace reviews itself, a maintainer of it, about what others submitted.
    OWN_REVIEWER = "reviewer role or own review"
    ADMIN = "admin role"

    @property
    def meaning(self) -> str:
        return _MEANINGS[self]


_MEANINGS = {
    Right.ANYONE: "everybody",
    Right.READER: "whoever may read it",
    Right.SIGNED_IN: "every account",
    Right.SUBMITTER: "its submitter, a maintainer of its repository, reviewers",
    Right.MEMBER: "a member of the namespace, reviewers and admins",
    Right.MAINTAINER: "a maintainer of its repository or namespace",
    Right.OWNER: "an owner of the namespace, admins",
    Right.REVIEWER: "reviewers and admins",
    Right.OWN_REVIEWER: "reviewers and admins; a maintainer of a namespace that reviews itself, who did not submit it",
    Right.ADMIN: "admins",
}
#: Rights that a role gives, with the scope that a token needs, also to read.
_SCOPES_OF_ROLES = {
    Right.REVIEWER: TokenScope.REVIEW,
    Right.OWN_REVIEWER: TokenScope.REVIEW,
    Right.ADMIN: TokenScope.ADMIN,
}
#: Rights that anonymous requests have.
OPEN_RIGHTS = frozenset({Right.ANYONE, Right.READER})

#: How an account comes to control a repository.
_ROLES = {
    Right.SUBMITTER: NamespaceRole.MAINTAINER,
    Right.MEMBER: NamespaceRole.READER,
    Right.MAINTAINER: NamespaceRole.MAINTAINER,
    Right.OWNER: NamespaceRole.OWNER,
}

CLAIM_FIX = "claim the repository on your account page, or with 'vskill-platform owner claim'"


class ActionObject(msgspec.Struct, frozen=True):
    """What a right about an object is evaluated on."""

    #: None: the namespace itself.
    identity: Identity | None = None
    #: Accounts that submitted it.
    submitters: tuple[str, ...] = ()
    #: Where there is no identity.
    namespace: str = ""

    @property
    def within(self) -> str:
        return self.namespace if self.identity is None else namespace_of(self.identity)


def scope_for(right: Right, method: str) -> TokenScope:
    """What a token needs for an action of this right, unless its declaration says otherwise."""
    if right in _SCOPES_OF_ROLES:
        return _SCOPES_OF_ROLES[right]
    if method == "GET" or right is Right.READER:
        return TokenScope.READ
    return TokenScope.SUBMIT if right in {Right.ANYONE, Right.SUBMITTER} else TokenScope.OWN


def admit(principal: Principal, right: Right, scope: TokenScope) -> None:
    """Raise NotSignedIn or NotPermitted for what needs no look at an object."""
    if right is Right.OWN_REVIEWER:
        # The scope `review` is about the whole registry; a maintainer acts in a namespace.
        is_maintainer = bool(principal.reviews) and not principal.is_reviewer
        right, scope = (Right.SIGNED_IN, TokenScope.OWN) if is_maintainer else (Right.REVIEWER, scope)
    principal.require_scope(scope)
    if right in OPEN_RIGHTS or principal.operator:
        return
    if principal.account is None:
        raise NotSignedIn
    if right in (Right.REVIEWER, Right.ADMIN) and principal.namespace is not None:
        message = f"This token is bound to the namespace {principal.namespace}."
        raise NotPermitted(message, needs=right.value, fix="send a token that is not bound to a namespace")
    if right is Right.REVIEWER and not principal.is_reviewer:
        raise NotPermitted("Only reviewers may do this.", needs="reviewer")
    if right is Right.ADMIN and not principal.is_admin:
        raise NotPermitted("Only admins may do this.", needs="admin")


def is_unlimited(principal: Principal) -> bool:
    return principal.is_admin


async def may(principal: Principal, right: Right, acted_on: ActionObject) -> bool:
    if principal.ci is not None:
        return principal.ci.is_of(acted_on.identity)
    if right is Right.READER or principal.operator:
        return True
    if principal.account is None or principal.namespace not in (None, acted_on.within):
        return False
    if right is Right.OWN_REVIEWER:
        is_others = principal.account not in acted_on.submitters
        return principal.is_reviewer or (is_others and acted_on.within in principal.reviews)
    if right is Right.SUBMITTER and (principal.is_reviewer or principal.account in acted_on.submitters):
        return True
    if right is Right.OWNER and principal.is_admin:
        return True
    if right is Right.MEMBER and principal.is_reviewer:
        return True
    if acted_on.identity is None:
        role = await role_in(principal.account, acted_on.namespace, principal.groups)
    else:
        role = await role_at(principal.account, acted_on.identity, principal.groups)
    return role is not None and role.rank >= _ROLES[right].rank


async def require_right(principal: Principal, right: Right, acted_on: ActionObject) -> None:
    if not await may(principal, right, acted_on):
        raise _refusal(principal, right, acted_on)


def _refusal(principal: Principal, right: Right, acted_on: ActionObject) -> NotPermitted:
    account, identity, name = principal.account, acted_on.identity, acted_on.within
    if principal.namespace not in (None, name):
        message = f"This token is bound to the namespace {principal.namespace}, and this is in {name}."
        return NotPermitted(message, account=account, fix="send a token that is not bound to a namespace")
    if right is Right.OWNER or identity is None:
        message = f"Only {_MEANINGS[right].replace('the namespace', name)} may do this."
        return NotPermitted(message, account=account, fix=f"ask an owner of {name}")
    if right is Right.OWN_REVIEWER:
        message = f"Only a reviewer, or a maintainer of {name} who did not submit it, may do this."
        return NotPermitted(message, account=account)
    submitter = right is Right.SUBMITTER
    if identity.is_upload:
        others = "its submitter, a reviewer or " if submitter else ""
        message = f"Only {others}a maintainer of {name} may do this: the skill is in that namespace."
        return NotPermitted(message, account=account)
    if submitter:
        message = "Only its submitter, a maintainer of its repository or a reviewer may do this."
    else:
        message = f"Only a maintainer of {identity.url} may do this; submitting it gives no such right."
    return NotPermitted(message, account=account, fix=CLAIM_FIX)


# What a principal may read: a set of audiences, which every read passes to its query; `resolve` finds it out once, from
# the namespaces as they are then. Of a submission that one may read, its place, state, history and reasons are shown;
# who submitted it, which account acted and which machine worked on it only to that account and to reviewers (E6).


class Viewer(msgspec.Struct, frozen=True):
    """What decides which names a principal sees."""

    account: str | None = None
    reviewer: bool = False

    def sees_private(self, record: Submission) -> bool:
        """Whether it may know who submitted this one."""
        return self.reviewer or (self.account is not None and self.account == record.submitter)

    def actor(self, actor: str) -> str:
        kind, _, name = actor.partition(":")
        is_own = kind in ("user", MAINTAINER) and name == self.account
        if not name or self.reviewer or kind in ("ci", "follow") or is_own:
            return actor
        return _KINDS.get(kind, kind)

    def submitter(self, record: Submission) -> str | None:
        """Who submitted it; None is nobody who was signed in, or not for this viewer to know."""
        return record.submitter if self.sees_private(record) else None

    def worker(self, record: Submission) -> str | None:
        return (
            None
            if record.claim is None
            else self.actor(f"worker:{record.claim.worker}").removeprefix("worker:")
        )


#: What strangers learn of an actor.
_KINDS = {
    "user": "its submitter",
    "admin": "a reviewer",
    MAINTAINER: "a maintainer of its namespace",
    "worker": "a worker",
}


def viewer_for(principal: Principal) -> Viewer:
    return Viewer(principal.account, principal.is_reviewer)


async def resolve(principal: Principal) -> Principal:
    """The principal with what it may read and review now. What was found out before is found out again."""
    directory, account = await read_directory(), principal.account
    reviews: frozenset[str] = frozenset()
    if account is not None:
        reviews = namespaces_reviewed_by(directory, account, principal.groups)
    if principal.namespace is not None:
        reviews &= {principal.namespace}
    return msgspec.structs.replace(principal, audiences=audiences_in(principal, directory), reviews=reviews)


def audiences_in(principal: Principal, directory: Directory) -> Audiences:
    reader = Reader(principal.account, principal.is_reviewer, principal.namespace, principal.groups)
    return audiences(reader, directory)


def about_own_repository(job: Principal) -> Principal:
    """A CI job with its namespace's audiences, only for actions that `may` or intake hold to its repository."""
    if job.ci is None:
        return job
    own = namespace_audiences(namespace_of(job.ci.repository)) | {PUBLIC}
    return msgspec.structs.replace(job, audiences=own)


def require_entry(principal: Principal, *, lets_jobs_in: bool = False) -> None:
    """Raise NotSignedIn where the registry lets in accounts only, and this is none; NotPermitted where CI jobs have
    nothing to ask for."""
    if principal.ci is not None and not lets_jobs_in:
        principal.require_scope(TokenScope.READ)
    if principal.account is None and principal.ci is None and audiences_of(principal) == frozenset():
        raise NotSignedIn


def audiences_of(reader: Principal) -> Audiences:
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
    known = services.kept.directory
    return known is not None and audiences_of(reader) == public_form(known[1])


def needs_token(services: Env, audience: str) -> bool:
    """Whether a program must say who it is to read a record of this audience. What a process has not read is taken for
    hidden."""
    known = services.kept.directory
    return known is None or not may_read(audience, public_form(known[1]))
