"""The repair of one damaged content: a task, asked for when the damage is found.

The files are fetched again from the repository at the commit that was verified, and replace the damaged ones only if
their digest is the same. A list of skills is made again at the next request. Uploads have no source: they wait until
somebody submits the same files again, or restores them from a backup. The task then says so, and the scrub asks for it
again later.
"""

import msgspec

from vskill_core.content import digest_of_files
from vskill_core.errors import (
    ContentDamaged,
    LimitExceeded,
    NoSkillFound,
    SourceGone,
    SourceUnavailable,
)
from vskill_platform.domain import keys
from vskill_platform.domain.operation.damage import Damage
from vskill_platform.domain.operation.task import Task
from vskill_platform.domain.packed_content import pack
from vskill_platform.domain.skills.skill import SkillVersion
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.kv.entries import Delete
from vskill_platform.records import decode
from vskill_platform.store.people.source_credentials import sources_for
from vskill_platform.store.stored_content import mending_writes, read_damage, verify_content
from vskill_platform.store.tasks import TaskEnd
from vskill_platform.worker_context import require_env

NO_SOURCE = "it was uploaded: submit the same files again, or restore them from a backup"
UNKNOWN_SOURCE = "the records that name it are not known yet: the scrub finds them"


class _NotThere(Exception):
    """The source does not have these files any more."""


async def repair(task: Task) -> TaskEnd:
    damage = await read_damage(task.subject["digest"])
    if damage is None:
        return TaskEnd("nothing to repair: it is not damaged")
    if await _is_whole(damage.digest):
        how = "it was read and found whole"
        return TaskEnd(how, mending_writes(damage, how))
    lists = tuple(key for key in damage.named_by if key.startswith(keys.git_list.prefix))
    if lists:
        how = "it is a list of skills, which is made anew for the next client that asks"
        return TaskEnd(how, (*map(Delete, lists), *mending_writes(damage, how)))
    return await _fetch_again(damage)


async def _is_whole(digest: str) -> bool:
    try:
        await verify_content(await require_env("blobs").blobs.get(digest), digest)
    except ContentDamaged:
        return False
    return True


async def _fetch_again(damage: Damage) -> TaskEnd:
    """Try each place that it came from; retry later if one is unavailable and no other has it."""
    places = await _places(damage)
    reasons = [] if places else [NO_SOURCE if damage.named_by else UNKNOWN_SOURCE]
    away: SourceUnavailable | None = None
    for place in places:
        try:
            await _bring(damage.digest, place)
        except SourceUnavailable as error:
            away = error
        except (_NotThere, SourceGone, NoSkillFound, LimitExceeded) as error:
            reasons.append(str(error))
        else:
            how = f"repaired from {place.repo_url} at {place.commit or 'its head'}"
            return TaskEnd(how, mending_writes(damage, how))
    if away is not None:
        raise away
    return TaskEnd(f"waits: {'; '.join(reasons)}")


async def _places(damage: Damage) -> list[Submission]:
    """The repositories and commits that the records name, each once."""
    found = [await _place(key) for key in damage.named_by]
    repositories = [one for one in found if one is not None and not one.identity.is_upload]
    return list({(one.identity.key, one.commit): one for one in repositories}.values())


async def _place(key: str) -> Submission | None:
    """The run behind a record, at the commit that it verified; None where the record is gone."""
    entry = await require_env("kv").kv.get(key)
    if entry is None:
        return None
    if not key.startswith(keys.version.prefix):
        return decode(entry, Submission)
    version = decode(entry, SkillVersion)
    run = await _place(keys.sub(version.submission)) if version.submission else None
    return None if run is None else msgspec.structs.replace(run, commit=version.commit)


async def _bring(digest: str, place: Submission) -> None:
    env = require_env("sources")
    sources = await sources_for(place.identity, with_credential=place.with_credential)
    files = (await sources.fetch(place)).files
    if digest_of_files(files) != digest:
        raise _NotThere(f"{place.repo_url} has other files at {place.commit or 'its head'} now")
    await env.blobs.put(digest, pack(files), replace=True)
    if not await _is_whole(digest):
        raise _NotThere("the content store does not give back what was written")
