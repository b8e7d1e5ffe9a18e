"""Who may submit a place. If the submitter may not read what is there, intake answers as for a repository that does not
exist, after the same work."""

import hashlib
from collections.abc import Awaitable, Callable
from typing import NoReturn

import msgspec

from vskill_core.errors import LimitExceeded, NoSkillFound, NotPermitted, NotSignedIn, SourceUnavailable
from vskill_core.identity import Identity, submission_id
from vskill_platform.domain.people.namespace import (
    PUBLIC,
    PUBLIC_ONLY,
    Audiences,
    NamespaceRole,
    Submitters,
    may_read,
    namespace_of,
)
from vskill_platform.domain.people.token import CiJob
from vskill_platform.sources.contract import no_repository
from vskill_platform.store.people.namespaces import belonging_of, read_directory
from vskill_platform.store.people.owners import role_at
from vskill_platform.submission_store import read_submission


class SubmittedBy(msgspec.Struct, frozen=True):
    """Who submits, and what decides whether they may."""

    #: None: not signed in, or the operator.
    account: str | None = None
    audiences: Audiences = PUBLIC_ONLY
    #: The one namespace that its token is bound to.
    namespace: str | None = None
    #: Runs commands on the server's machine.
    operator: bool = False
    #: The groups that its account is in.
    groups: frozenset[str] = frozenset()
    #: The CI job that it is; its repository is all that it may submit.
    ci: CiJob | None = None
    #: The followed repository that it comes from, as `host/owner/repo`: a maintainer had it followed.
    follow: str = ""

    @property
    def commit(self) -> str | None:
        """The commit that is looked at; None: the newest of the default branch."""
        return self.ci.publisher.commit if self.ci else None


NOBODY = SubmittedBy()
#: How a source looks at a place.
Look = Callable[[Identity], Awaitable[object]]


async def refuse_closed(place: Identity, look: Look | None, by: SubmittedBy | None = None) -> NoReturn:
    """Answer as for a missing repository, after the same work: ask the host for a repository that it does not have, so
    that the response time reveals nothing. `by` is who would be asked about a credential."""
    absent = f"{place.repo}-{hashlib.sha256(place.repo_key.encode()).hexdigest()[:16]}"
    try:
        if look is not None and by is not None:
            await may_use_credential(place, by)
        if look is not None:
            await look(msgspec.structs.replace(place, repo=absent))
    except SourceUnavailable as error:
        raise SourceUnavailable(error.message.replace(absent, place.repo), host=place.host) from None
    except (NoSkillFound, LimitExceeded):
        pass  # the result does not matter
    raise no_repository(place.host)


async def may_use_credential(place: Identity, by: SubmittedBy) -> bool:
    """Whether they act for the namespace of a place that they may submit: then its credential is used for them."""
    if by.ci is not None or by.follow:
        return by.follow == place.repo_key or (by.ci is not None and by.ci.is_of(place))
    return by.operator if by.account is None else await _is_author(by.account, place, by.groups)


async def require_maintainer(place: Identity, by: SubmittedBy) -> None:
    """Raise if they may not say what the place is published as: whoever maintains it does, and its own CI job."""
    if by.operator or (by.ci is not None and by.ci.is_of(place)):
        return
    role = None if by.account is None else await role_at(by.account, place, by.groups)
    if role is None or role.rank < NamespaceRole.MAINTAINER.rank:
        message = f"Only a maintainer of {namespace_of(place)} says whether it is a skill or a plugin."
        raise NotPermitted(message, field="kind", fix="leave the kind out, or claim the repository first")


async def require_open(asked: Identity, found: Identity, by: SubmittedBy) -> None:
    """Raise if they may not submit `found`, to which the host redirects `asked`."""
    if found.key != asked.key and await is_closed(found, by):
        raise no_repository(asked.host)


async def is_closed(place: Identity, by: SubmittedBy) -> bool:
    """Whether they may not read what is at this place. For them the repository does not exist: they learn no more than
    its host tells, and every other check runs as for any place."""
    audience = (await belonging_of(place)).audience
    closed = not may_read(audience, by.audiences) or (audience != PUBLIC and await _is_hidden(place, by))
    if not by.operator:
        await _require_submitter(place, by)
    return closed


async def _require_submitter(place: Identity, by: SubmittedBy) -> None:
    """Raise if they may not submit to this namespace at all."""
    name = namespace_of(place)
    if by.follow == place.repo_key:
        return  # a maintainer had it followed
    if by.follow:
        raise NotPermitted(f"Following {by.follow} does not submit {place.url}.")
    if by.ci is not None:
        if not by.ci.is_of(place):
            raise NotPermitted(f"The token of a CI job only submits {by.ci.repository.url}.")
        return  # a maintainer let its workflow in
    if by.namespace not in (None, name):
        message = f"This token is bound to the namespace {by.namespace}, and this place is in {name}."
        raise NotPermitted(message, fix="send a token that is not bound to a namespace")
    submitters = (await read_directory()).access.submitters
    if submitters is Submitters.EVERYBODY:
        return
    if by.account is None:
        raise NotSignedIn
    if submitters is Submitters.MEMBERS and not await _is_author(by.account, place, by.groups):
        message = f"Only authors of the namespace {name} may submit to it."
        raise NotPermitted(message, namespace=name, fix=f"ask an owner of {name} to make you an author")


async def _is_hidden(place: Identity, by: SubmittedBy) -> bool:
    """Whether its submission is narrower than the namespace, and they may not read it."""
    found = await read_submission(submission_id(place))
    return found is not None and not may_read(found[0].audience, by.audiences)


async def _is_author(account: str, place: Identity, groups: frozenset[str]) -> bool:
    role = await role_at(account, place, groups)
    return role is not None and role.rank >= NamespaceRole.AUTHOR.rank
