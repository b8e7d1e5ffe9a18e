"""Credentials: what lets the registry fetch a namespace's private repositories. An owner adds one; its secret is
sealed, and never shown again."""

from collections.abc import Callable
from typing import Annotated, ClassVar, NoReturn
from urllib.parse import urlsplit

import msgspec

from vskill_client.wire.base import Wire
from vskill_core.errors import InvalidInput, NotFound, SourceUnavailable
from vskill_core.identity import normalise
from vskill_platform.actions.action import Reason, Services, action
from vskill_platform.actions.people.namespaces import NAMESPACE, NamespaceRequest, object_of, written
from vskill_platform.actions.people.owners import RepositoryAddress
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.domain.people import source_credential
from vskill_platform.signing.deploy_key import make_deploy_key
from vskill_platform.signing.sealing import HOW_TO
from vskill_platform.sources.ssh import require_client
from vskill_platform.store.people import source_credentials
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.people.namespaces import read_directory

CREDENTIALS = f"{NAMESPACE}/credentials"

SecretToken = Annotated[str, msgspec.Meta(min_length=1, max_length=4096, pattern="^[!-~]+$")]
UserName = Annotated[str, msgspec.Meta(max_length=100, pattern="^[!-9;-~]*$")]
SshUser = Annotated[str, msgspec.Meta(max_length=64, pattern="^[A-Za-z0-9_][A-Za-z0-9._-]*$")]
Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]
HostKeys = Annotated[str, msgspec.Meta(max_length=1000)]
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


class AddKey(NamespaceRequest, frozen=True, kw_only=True):
    """A deploy key for repositories of the namespace."""

    #: the address of a repository, or of an owner for all of its; ssh://USER@HOST:PORT/... tells user and port, too
    repo_url: RepositoryAddress
    #: the user name for SSH
    user: SshUser = "git"
    #: the port for SSH
    port: Port = source_credential.SSH_PORT
    #: fingerprints of the server's host key, such as SHA256:...; large forges' are known, others' are shown to confirm
    host_key: HostKeys = ""
    #: why; kept in the audit
    reason: Reason


class SetHostKey(NamespaceRequest, frozen=True, kw_only=True):
    """The host key that a deploy key's server shows from now on."""

    credential_id: CredentialId
    #: fingerprints of the server's host key, such as SHA256:...; give two while it changes
    host_key: HostKeys
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
    #: the public half of a deploy key, for the forge; empty for a token
    public_key: str
    #: where the deploy key's server listens
    port: int
    #: fingerprints of the host keys that it may show
    host_keys: tuple[str, ...]


class CredentialList(Wire, frozen=True):
    """The credentials of a namespace, the oldest first."""

    name: str
    credentials: tuple[SourceCredentialView, ...]
    #: what keeps one from being added now; null: nothing
    problem: str | None


async def list_credentials(request: NamespaceRequest) -> CredentialList:
    return await _view(await source_credentials.read_credentials(written(request.name)))


async def add_token(services: Services, actor: Principal, request: AddToken) -> CredentialList:
    name = written(request.name)
    made = source_credential.SourceCredential(
        id=services.clock.new_id(),
        address=source_credential.read_address(request.repo_url, name),
        user=request.user or "x-access-token",
        sealed=source_credential.Sealed("", b""),
        by=actor.actor,
        created_at=services.kv.now(),
    )
    return await _add(actor, name, made, request.token.encode(), request.reason)


async def add_key(services: Services, actor: Principal, request: AddKey) -> CredentialList:
    name = written(request.name)
    address = source_credential.read_address(request.repo_url, name)
    user, port = _server_of(request)
    await _require_possible(name)
    require_client()
    host_keys = source_credential.read_host_keys(request.host_key) or source_credential.host_keys_of(
        address, port
    )
    if not host_keys:
        await _show_host_key(address, user, port)
    credential_id = services.clock.new_id()
    secret, public = make_deploy_key(f"vskill-{credential_id}")
    made = source_credential.SourceCredential(
        id=credential_id,
        address=address,
        user=user,
        sealed=source_credential.Sealed("", b""),
        by=actor.actor,
        created_at=services.kv.now(),
        public_key=public,
        port=port,
        host_keys=host_keys,
    )
    return await _add(actor, name, made, secret, request.reason)


def _server_of(request: AddKey) -> tuple[str, int]:
    if not request.repo_url.lower().startswith("ssh://"):
        return request.user, request.port
    try:
        parts = urlsplit(request.repo_url)
        user = msgspec.convert(parts.username or request.user, SshUser)
        return user, msgspec.convert(parts.port or request.port, Port)
    except ValueError:
        fix = "write it as ssh://git@git.example.org:2222/owner/repository"
        raise InvalidInput(
            "The address has no valid user name or port for SSH.", field="repo_url", fix=fix
        ) from None


async def _show_host_key(address: str, user: str, port: int) -> NoReturn:
    """Raise with the host key that the server shows, for somebody to compare and confirm."""
    repository = address if address.count("/") > 1 else f"{address}/any"
    place = normalise(f"https://{repository}")
    shown = await source_credentials.ask_host_key(place, user, port)
    raise InvalidInput(
        f"{place.host} shows the SSH host key {shown}, and nobody has said yet that it is the right one.",
        field="host_key",
        fix=f"compare it with what the host's operator publishes; if it is the same, give {shown} as the host key",
        host_key=shown,
    )


async def set_host_key(actor: Principal, request: SetHostKey) -> CredentialList:
    name = written(request.name)
    wanted = await _find(name, request.credential_id)
    if not wanted.public_key:
        message = f"{wanted.id} is a token, which has no host key."
        raise InvalidInput(message, field="credential_id", fix="name a deploy key")
    host_keys = source_credential.read_host_keys(request.host_key)
    if not host_keys:
        raise InvalidInput("The host key is empty.", field="host_key", fix="give its fingerprint, SHA256:…")
    await _require_possible(name)
    known_keys = await source_credentials.sealing_keys()

    def change(now: source_credential.NamespaceCredentials) -> source_credential.NamespaceCredentials:
        changed = (
            source_credentials.seal_with_host_keys(known_keys, name, one, host_keys)
            if one.id == wanted.id
            else one
            for one in now.credentials
        )
        return msgspec.structs.replace(now, credentials=tuple(changed))

    named = msgspec.structs.replace(wanted, host_keys=host_keys)
    return await _change(actor, "host key of a deploy key changed", named, name, change, request.reason)


async def look_at_sealing() -> tuple[str, list[source_credentials.ExaminedCredential]]:
    keys_here = await source_credentials.sealing_keys()
    return keys_here[0].key_id if keys_here else "", await source_credentials.examine_credentials()


async def _add(
    actor: Principal, name: str, made: source_credential.SourceCredential, secret: bytes, reason: str
) -> CredentialList:
    await _require_possible(name)
    sealed = source_credentials.seal_credential(
        (await source_credentials.sealing_keys())[0], name, made, secret
    )

    def change(known: source_credential.NamespaceCredentials) -> source_credential.NamespaceCredentials:
        if len(known.credentials) >= source_credential.MOST_CREDENTIALS:
            message = f"{name} has {source_credential.MOST_CREDENTIALS} credentials, which is the limit."
            raise InvalidInput(message, field="repo_url", fix="remove one that is not used")
        return msgspec.structs.replace(known, credentials=(*known.credentials, sealed))

    return await _change(actor, "credential added", made, name, change, reason)


async def remove(actor: Principal, request: RemoveCredential) -> CredentialList:
    name = written(request.name)
    wanted = await _find(name, request.credential_id)

    def change(now: source_credential.NamespaceCredentials) -> source_credential.NamespaceCredentials:
        left = tuple(one for one in now.credentials if one.id != request.credential_id)
        return msgspec.structs.replace(now, credentials=left)

    return await _change(actor, "credential removed", wanted, name, change, request.reason)


async def _find(name: str, credential_id: str) -> source_credential.SourceCredential:
    for one in (await source_credentials.read_credentials(name)).credentials:
        if one.id == credential_id:
            return one
    raise NotFound(f"{name} has no credential {credential_id}.", credential=credential_id)


async def _change(
    actor: Principal,
    what: str,
    credential: source_credential.SourceCredential,
    name: str,
    change: Callable[[source_credential.NamespaceCredentials], source_credential.NamespaceCredentials],
    reason: str,
) -> CredentialList:
    details = {"credential": credential.id, "address": credential.address}
    if credential.public_key:
        details["host_keys"] = ", ".join(credential.host_keys)
    note = AuditNote(what, name, actor.actor, reason, details)
    return await _view(await source_credentials.change_credentials(name, change, note))


async def _require_possible(name: str) -> None:
    if problem := await _problem(name):
        raise InvalidInput(f"No credential can be added: {problem}.", field="name", fix=problem)


async def _problem(name: str) -> str | None:
    """What keeps a credential from being added. Without a visibility, what it fetches would be for everybody."""
    namespace = (await read_directory()).namespaces.get(name)
    if namespace is None or not namespace.managed:
        return f"set first who may read {name}"
    return None if await source_credentials.sealing_keys() else f"ask the operator to {HOW_TO}"


async def _view(known: source_credential.NamespaceCredentials) -> CredentialList:
    shown = tuple(SourceCredentialView.of(one) for one in known.credentials)
    return CredentialList(known.name, shown, await _problem(known.name))


LIST_CREDENTIALS = action(
    list_credentials,
    "credential.list",
    CREDENTIALS,
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
ADD_KEY = action(
    add_key,
    "credential.add-key",
    f"{CREDENTIALS}/key",
    right=Right.OWNER,
    acts_on=object_of,
    status=201,
    errors=(SourceUnavailable,),
    summary="Make a deploy key for a namespace's private repositories",
    about="The answer has its public half, for the forge; the private half never leaves the registry. Of a host that "
    "is not known, the first request answers with its host key, to be compared and given with the second.",
)
SET_HOST_KEY = action(
    set_host_key,
    "credential.set-host-key",
    f"{CREDENTIALS}/{{credential_id}}/host-key",
    right=Right.OWNER,
    acts_on=object_of,
    errors=(NotFound, SourceUnavailable),
    summary="Confirm another host key for a deploy key",
    about="For a host that has a new one. Runs that waited for it go on by themselves.",
)
REMOVE_CREDENTIAL = action(
    remove,
    "credential.remove",
    f"{CREDENTIALS}/{{credential_id}}/remove",
    right=Right.OWNER,
    acts_on=object_of,
    errors=(NotFound,),
    summary="Remove a credential for a namespace's private repositories",
    about="What was published stays. Remove the token or key at the forge, too.",
)
