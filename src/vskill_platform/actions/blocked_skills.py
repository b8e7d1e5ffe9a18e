"""What the blocklist says about published skills now. An entry counts from the moment it is written, before the pass
that takes versions down has come by."""

from collections.abc import Sequence

from vskill_platform.actions.action import Services
from vskill_platform.domain.block_index import Blocklist, all_targets
from vskill_platform.domain.skill import PublishedSkill
from vskill_platform.store.blocklist import blocklist_version, find_hits, read_blocklist


async def current_blocklist(services: Services, version: int | None = None) -> Blocklist:
    """The blocklist as it is now: one small read, or none where its present version is known, and all of it only where
    it has changed."""
    version = await blocklist_version() if version is None else version
    known = services.kept.blocklist
    if known is None or known.version != version:
        known = services.kept.blocklist = await read_blocklist(version)
    return known


async def leave_out_blocked(
    services: Services, skills: Sequence[PublishedSkill]
) -> tuple[PublishedSkill, ...]:
    """Those that no entry hits now. A process that has not read the whole blocklist yet asks for the entries that could
    hit these, so that its first answer costs no more round trips than any other."""
    if services.kept.blocklist is not None:
        blocklist = await current_blocklist(services)
        return tuple(one for one in skills if not blocklist.hits_skill(one))
    targets = [all_targets(one.identity, (one.name,), one.current_digest) for one in skills]
    wanted = {target for own in targets for target in own}
    hit = {entry.target for entry in await find_hits(wanted)} if wanted else set()
    return tuple(one for one, own in zip(skills, targets, strict=True) if hit.isdisjoint(own))
