"""The files behind a digest: read whole or not at all, and kept before any record names them. All reads and writes of a
skill's files go through here, so damage is always noted."""

import asyncio
from collections.abc import Sequence

from vskill_core.content import SkillFile, pack
from vskill_core.errors import ContentDamaged
from vskill_platform.domain import keys
from vskill_platform.domain.operation.damage import verified_files
from vskill_platform.store.damage import forget_damage, note_damage_in_passing
from vskill_platform.worker_context import require_env

#: Below this, verifying takes less time than handing the work to a thread.
INLINE_BYTES = 64 * 1024


async def read_content(digest: str) -> tuple[SkillFile, ...]:
    """The files of a content, every byte verified. Raises ContentDamaged, which is noted, or BlobUnavailable."""
    data = await require_env("blobs").blobs.get(digest)
    try:
        return await verify_content(data, digest)
    except ContentDamaged as found:
        await note_damage_in_passing(found)
        raise


async def verify_content(data: bytes | None, digest: str) -> tuple[SkillFile, ...]:
    """The files in these bytes; ContentDamaged where they are not what the digest says."""
    if data is None or len(data) <= INLINE_BYTES:
        return verified_files(data, digest)
    return await asyncio.to_thread(verified_files, data, digest)


async def keep_content(digest: str, files: Sequence[SkillFile]) -> None:
    """Keep files under their digest; they replace damaged ones."""
    env = require_env("blobs")
    is_damaged = await env.kv.get(keys.damage(digest)) is not None
    await env.blobs.put(digest, pack(files), replace=is_damaged)
    if is_damaged:
        await forget_damage(digest, "the same files were submitted or fetched again")
