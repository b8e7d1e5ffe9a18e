"""Credentials: what lets the registry fetch a namespace's private repositories. An owner adds one; its secret is
sealed, and never shown again."""

from collections.abc import Callable
from typing import Annotated, ClassVar

import msgspec

from vskill_client.wire.base import Wire
from vskill_core.errors import InvalidInput, NotFound
from vskill_platform.actions.action import Reason, Services, action
from vskill_platform.actions.people.namespaces import NAMESPACE, NamespaceRequest, object_of, written
from vskill_platform.actions.people.owners import RepositoryAddress
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.domain.people.source_credential import (
    MOST_CREDENTIALS,
    NamespaceCredentials,
    Sealed,
    SourceCredential,
    read_address,
)
from vskill_platform.signing.sealing import HOW_TO
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.people.namespaces import read_directory
from vskill_platform.store.people.source_credentials import (
    ExaminedCredential,
    change_credentials,
    examine_credentials,
    read_credentials,
    seal_credential,
    sealing_keys,
)

CREDENTIALS = f"{NAMESPACE}/credentials"

SecretToken = Annotated[str, msgspec.Meta(min_length=1, max_length=4096, pattern="^[!-~]+$")]
UserName = Annotated[str, msgspec.Meta(max_length=100, pattern="^[!-9;-~]*$")]
CredentialId = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class AddToken(NamespaceRequest, frozen=True, kw_only=True):
    """A token for repositories of the namespace."""

    SECRETS: ClassVar[frozenset[str]] = frozenset({"token"})

    #: the address of a repository, or of an owner for all of its repositories
    repo_url: RepositoryAddress
    #: the forge's token, which should only read; it is sealed and never shown again
    token: SecretToken
    #: the user name that the forge wants with it; most take any
    user: UserName = "x-access-token"
    #: why; kept in the audit
    reason: Reason


class RemoveCredential(NamespaceRequest, frozen=True, kw_only=True):
    """A credential that is used no longer."""

    credential_id: CredentialId
    #: why; kept in the audit
    reason: Reason


class SourceCredentialView(Wire, frozen=True):
    """A credential, without its secret."""

    id: str
    #: `host/owner` or `host/owner/repository`
    address: str
    user: str
    #: who added it
    by: str
    created_at: str


class CredentialList(Wire, frozen=True):
    """The credentials of a namespace, the oldest first."""

    name: str
    credentials: tuple[SourceCredentialView, ...]
    #: what keeps one from being added now; null: nothing
    problem: str | None


async def list_credentials(request: NamespaceRequest) -> CredentialList:
    return await _view(await read_credentials(written(request.name)))


async def add_token(services: Services, actor: Principal, request: AddToken) -> CredentialList:
    name = written(request.name)
    made = SourceCredential(
        id=services.clock.new_id(),
        address=read_address(request.repo_url, name),
        user=request.user or "x-access-token",
        sealed=Sealed("", b""),
        by=actor.actor,
        created_at=services.kv.now(),
    )
    return await _add(actor, name, made, request.token.encode(), request.reason)


async def look_at_sealing() -> tuple[str, list[ExaminedCredential]]:
    """The key that seals here, empty where there is none, and every credential."""
    keys_here = await sealing_keys()
    return keys_here[0].key_id if keys_here else "", await examine_credentials()


async def _add(
    actor: Principal, name: str, made: SourceCredential, secret: bytes, reason: str
) -> CredentialList:
    if problem := await _problem(name):
        raise InvalidInput(f"No credential can be added: {problem}.", field="name", fix=problem)
    sealed = seal_credential((await sealing_keys())[0], name, made, secret)

    def change(known: NamespaceCredentials) -> NamespaceCredentials:
        if len(known.credentials) >= MOST_CREDENTIALS:
            message = f"{name} has {MOST_CREDENTIALS} credentials, which is the limit."
            raise InvalidInput(message, field="repo_url", fix="remove one that is not used")
        return msgspec.structs.replace(known, credentials=(*known.credentials, sealed))

    return await _change(actor, "credential added", made, name, change, reason)


async def remove(actor: Principal, request: RemoveCredential) -> CredentialList:
    name = written(request.name)
    known = (await read_credentials(name)).credentials
    wanted = next((one for one in known if one.id == request.credential_id), None)
    if wanted is None:
        message = f"{name} has no credential {request.credential_id}."
        raise NotFound(message, credential=request.credential_id)

    def change(now: NamespaceCredentials) -> NamespaceCredentials:
        left = tuple(one for one in now.credentials if one.id != request.credential_id)
        return msgspec.structs.replace(now, credentials=left)

    return await _change(actor, "credential removed", wanted, name, change, request.reason)


async def _change(
    actor: Principal,
    what: str,
    credential: SourceCredential,
    name: str,
    change: Callable[[NamespaceCredentials], NamespaceCredentials],
    reason: str,
) -> CredentialList:
    details = {"credential": credential.id, "address": credential.address}
    note = AuditNote(what, name, actor.actor, reason, details)
    return await _view(await change_credentials(name, change, note))


async def _problem(name: str) -> str | None:
    """What keeps a credential from being added. Without a visibility, what it fetches would be for everybody."""
    namespace = (await read_directory()).namespaces.get(name)
    if namespace is None or not namespace.managed:
        return f"set first who may read {name}"
    return None if await sealing_keys() else f"ask the operator to {HOW_TO}"


async def _view(known: NamespaceCredentials) -> CredentialList:
    shown = tuple(SourceCredentialView.of(one) for one in known.credentials)
    return CredentialList(known.name, shown, await _problem(known.name))


LIST_CREDENTIALS = action(
    list_credentials,
    "credential.list",
    CREDENTIALS,
    method="GET",
    right=Right.MEMBER,
    acts_on=object_of,
    summary="List the credentials for a namespace's private repositories",
    about="Their secrets are never shown.",
)
ADD_TOKEN = action(
    add_token,
    "credential.add-token",
    f"{CREDENTIALS}/token",
    right=Right.OWNER,
    acts_on=object_of,
    status=201,
    summary="Add a token for a namespace's private repositories",
    about="It is used for what authors of the namespace submit, and for checks of that. What is fetched with it is for "
    "the readers of the namespace.",
)
REMOVE_CREDENTIAL = action(
    remove,
    "credential.remove",
    f"{CREDENTIALS}/{{credential_id}}/remove",
    right=Right.OWNER,
    acts_on=object_of,
    errors=(NotFound,),
    summary="Remove a credential for a namespace's private repositories",
    about="What was published stays. Revoke the token at the forge, too.",
)
