"""Publishers: the CI workflows that may submit a repository without a stored secret. A maintainer of the repository
adds one; a job of it exchanges the ID token of its forge for a token of ours, which can do nothing else.
"""

import importlib.util
from typing import Annotated

import msgspec

from vskill_client.wire.base import Wire, iso_time
from vskill_client.wire.login import CiTokenAnswer, ExchangeIdToken
from vskill_core.errors import InvalidInput, NotFound, NotPermitted
from vskill_platform.actions.action import Reason, Services, action
from vskill_platform.actions.people.owners import RepositoryRequest, object_of, repository_of
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.domain.people.namespace import may_read, public_form
from vskill_platform.setting_issuers import CiIssuer
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.people.namespaces import belonging_of, read_directory
from vskill_platform.store.people.publishers import (
    TrustedWorkflow,
    TrustedWorkflows,
    change_workflows,
    let_in,
    read_workflows,
    replace_workflow,
)

PUBLISHERS = "/api/v1/publishers"
MOST_WORKFLOWS = 20

IssuerName = Annotated[str, msgspec.Meta(min_length=1, max_length=30)]
WorkflowFile = Annotated[
    str, msgspec.Meta(max_length=300, pattern=r"^\.?[\w+@-][\w.+@-]*(/\.?[\w+@-][\w.+@-]*)*$")
]
RefPattern = Annotated[str, msgspec.Meta(max_length=300, pattern=r"^(refs/(heads|tags)/[^\s\[\]?]+)?$")]
EnvironmentName = Annotated[str, msgspec.Meta(max_length=255)]
RepositoryNumber = Annotated[str, msgspec.Meta(max_length=30, pattern="^[0-9]*$")]
PublisherId = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class ListPublishers(RepositoryRequest, frozen=True, kw_only=True):
    """Which repository."""


class AddPublisher(RepositoryRequest, frozen=True, kw_only=True):
    """A workflow that may submit the repository."""

    #: who signs the tokens of its jobs: `github`, `gitlab`, or a name that the operator gave
    issuer: IssuerName
    #: the workflow's file in the repository, such as `publish.yml`
    workflow: WorkflowFile
    #: the branches or tags that it may run for, such as `refs/tags/v*`; all if left out
    ref: RefPattern = ""
    #: the environment that it must run in; any if left out
    environment: EnvironmentName = ""
    #: the repository's number at its forge; that of the first job, within 30 days, if left out
    number: RepositoryNumber = ""
    #: why; kept in the audit
    reason: Reason


class RemovePublisher(RepositoryRequest, frozen=True, kw_only=True):
    """A publisher that may submit no longer."""

    publisher_id: PublisherId
    #: why; kept in the audit
    reason: Reason


class TrustedWorkflowView(Wire, frozen=True):
    """A workflow that may submit the repository."""

    id: str
    issuer: str
    workflow: str
    #: empty: every branch and tag
    ref: str
    #: empty: any
    environment: str
    #: the repository's number at its forge; empty until a job has told it
    number: str
    #: who added it
    by: str
    created_at: str
    last_used_at: str | None
    #: address of the last run
    last_run: str


class PublisherList(Wire, frozen=True):
    """The publishers of a repository, the oldest first."""

    repo_url: str
    publishers: tuple[TrustedWorkflowView, ...]
    #: the issuers that know repositories of this host
    issuers: tuple[str, ...]


async def list_publishers(services: Services, request: ListPublishers) -> PublisherList:
    identity = repository_of(request.repo_url)
    return _view(services, await read_workflows(identity), identity.host)


async def add(services: Services, actor: Principal, request: AddPublisher) -> PublisherList:
    identity = repository_of(request.repo_url)
    issuer = next((one for one in services.settings.ci_issuers if one.name == request.issuer), None)
    if issuer is None or issuer.host != identity.host:
        known = ", ".join(_issuers_for(services, identity.host))
        message = f"{request.issuer} does not sign for repositories of {identity.host}."
        fix = f"use {known}" if known else "ask the operator to name an issuer for that host"
        raise InvalidInput(message, field="issuer", fix=fix)
    made = TrustedWorkflow(
        id=services.clock.new_id(),
        issuer=issuer.name,
        workflow=_path_of(issuer, request.workflow),
        ref=request.ref,
        environment=request.environment,
        number=request.number if issuer.claims.repository_id else "",
        by=actor.actor,
        created_at=services.kv.now(),
    )

    def change(known: TrustedWorkflows) -> TrustedWorkflows:
        if len(known.workflows) >= MOST_WORKFLOWS:
            message = f"{identity.url} has {MOST_WORKFLOWS} publishers, which is the limit."
            raise InvalidInput(message, field="workflow", fix="remove one that is not used")
        return replace_workflow(known, made.id, made)

    details = {"issuer": made.issuer, "workflow": made.workflow, "ref": made.ref}
    note = AuditNote("publisher added", identity.url, actor.actor, request.reason, details)
    return _view(services, await change_workflows(identity, change, note), identity.host)


async def remove(services: Services, actor: Principal, request: RemovePublisher) -> PublisherList:
    identity = repository_of(request.repo_url)

    def change(known: TrustedWorkflows) -> TrustedWorkflows:
        if all(one.id != request.publisher_id for one in known.workflows):
            message = f"{identity.url} has no publisher {request.publisher_id}."
            raise NotFound(message, publisher=request.publisher_id)
        return replace_workflow(known, request.publisher_id)

    details = {"publisher": request.publisher_id}
    note = AuditNote("publisher removed", identity.url, actor.actor, request.reason, details)
    return _view(services, await change_workflows(identity, change, note), identity.host)


async def exchange(services: Services, request: ExchangeIdToken) -> CiTokenAnswer:
    """A token for a job whose forge vouches for it, and whose workflow a maintainer added."""
    if importlib.util.find_spec("joserfc") is None or not services.settings.public_url:
        message = "This registry takes nothing from CI: it has no public address, or lacks the extra `sso`."
        raise NotPermitted(message, fix="ask its operator to set VSKILL_PUBLIC_URL and to install the extra")
    from vskill_platform.sign_in.ci import prove_job  # noqa: PLC0415 - needs an extra

    proved = await prove_job(services.settings, request.id_token)
    audience = (await belonging_of(proved.repository)).audience
    is_open = may_read(audience, public_form(await read_directory()))
    secret, job = await let_in(proved, is_open=is_open)
    return CiTokenAnswer(secret, iso_time(job.expires_at), job.repository.url, job.publisher.commit)


def _path_of(issuer: CiIssuer, workflow: str) -> str:
    return workflow if "/" in workflow else f"{issuer.claims.folder}{workflow}"


def _issuers_for(services: Services, host: str) -> tuple[str, ...]:
    return tuple(one.name for one in services.settings.ci_issuers if one.host == host)


def _view(services: Services, known: TrustedWorkflows, host: str) -> PublisherList:
    ordered = sorted(known.workflows, key=lambda one: one.id)
    shown = tuple(TrustedWorkflowView.of(one) for one in ordered)
    return PublisherList(known.url, shown, _issuers_for(services, host))


LIST_PUBLISHERS = action(
    list_publishers,
    "publisher.list",
    PUBLISHERS,
    right=Right.MAINTAINER,
    acts_on=object_of,
    summary="List the CI workflows that may submit a repository",
)
ADD_PUBLISHER = action(
    add,
    "publisher.add",
    PUBLISHERS,
    right=Right.MAINTAINER,
    acts_on=object_of,
    status=201,
    summary="Let a CI workflow submit a repository",
    about="Its jobs exchange the ID token of their forge for a token that submits this repository and nothing else.",
)
REMOVE_PUBLISHER = action(
    remove,
    "publisher.remove",
    f"{PUBLISHERS}/{{publisher_id}}/remove",
    right=Right.MAINTAINER,
    acts_on=object_of,
    errors=(NotFound,),
    summary="Let a CI workflow submit a repository no longer",
    about="A token that a job has already ends within half an hour.",
)
