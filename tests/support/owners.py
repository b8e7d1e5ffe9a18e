"""Owners of repositories, for tests of what owners may do."""

import msgspec

from tests.support.envs import active_env
from vskill_core.identity import Identity
from vskill_platform.store.people.owners import Owner, Ownership, change_ownership
from vskill_platform.worker_context import Env


async def set_owners(env: Env, repo: Identity, *owners: Owner) -> Ownership:
    """Make these accounts the repository's owners, without a claim."""
    with active_env(env):
        return await change_ownership(
            repo,
            lambda known: msgspec.structs.replace(known, owners=owners),
            action="owner proved",
            by="system",
            reason="a test",
            details={},
        )
