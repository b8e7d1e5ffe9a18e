"""Namespaces with a visibility and members, and the registry's mode, as tests need them: written as the actions write
them, without asking who may."""

import msgspec

from tests.support.envs import active_env
from vskill_platform.domain.people.namespace import (
    Access,
    Member,
    Namespace,
    NamespaceRole,
    RegistryMode,
    Visibility,
)
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.people.namespaces import NamespaceChange, change_access, change_namespace
from vskill_platform.store.skills.names import name_namespace
from vskill_platform.worker_context import Env


async def manage(
    env: Env,
    name: str,
    visibility: Visibility | None,
    *members: str,
    role: NamespaceRole = NamespaceRole.READER,
) -> None:
    """Set who may read a namespace that is managed already or holds nothing yet (None: unmanaged); `members` are
    `user:NAME` or `team:NAME`."""
    entries = tuple(Member(one, role, 0, "added") for one in members)

    async def decide(namespace: Namespace) -> NamespaceChange:
        return NamespaceChange(msgspec.structs.replace(namespace, visibility=visibility, members=entries))

    with active_env(env):
        await change_namespace(name, decide, AuditNote("namespace changed", name, "system", "a test"))
        await name_namespace(name)


async def set_mode(env: Env, mode: RegistryMode) -> None:
    def change(access: Access) -> Access:
        return msgspec.structs.replace(access, mode=mode)

    with active_env(env):
        await change_access(change, AuditNote("access changed", "registry", "system", "a test"))
