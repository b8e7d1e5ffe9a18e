"""What the blocklist says about published skills now. An entry counts from the moment it is written, before the pass
that takes versions down has come by."""

from collections.abc import Iterable, Mapping, Sequence

from vskill_platform.actions.action import Services
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.visibility import audiences_of
from vskill_platform.domain import keys
from vskill_platform.domain.recall.block_index import Blocklist, all_targets
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.ledger.kv.entries import Entry
from vskill_platform.records import decode, read_entries, readable
from vskill_platform.store.recall.blocklist import blocklist_version, read_blocklist


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
    wanted = block_keys(skills)
    if not wanted:
        return ()
    return without_hits(skills, await read_entries(wanted))


def block_keys(skills: Iterable[PublishedSkill]) -> frozenset[str]:
    """The keys of the entries that would hit these skills: read together with what else is wanted of the store."""
    return frozenset(key for one in skills for key in _keys_for(one))


def without_hits(
    skills: Sequence[PublishedSkill], entries: Mapping[str, Entry]
) -> tuple[PublishedSkill, ...]:
    """Those that none of the entries hits that were found under `block_keys`."""
    return tuple(one for one in skills if entries.keys().isdisjoint(_keys_for(one)))


async def look_again(
    services: Services, reader: Principal, skills: Sequence[PublishedSkill]
) -> dict[str, PublishedSkill]:
    """Skills that were read a moment ago, as they are now, by canonical name: without those that were withdrawn, hidden
    from the reader or blocked meanwhile. By one read where the blocklist is empty or the kept one is the present one;
    the entries that could hit these are read otherwise, and never all of them for a page of a few skills."""
    if not skills:
        return {}
    records = {keys.skill(one.canonical) for one in skills}
    stored = await read_entries({*records, keys.CONTROL_BLOCKLIST})
    control, known = stored.get(keys.CONTROL_BLOCKLIST), services.kept.blocklist
    entries = (readable(stored.get(key), audiences_of(reader)) for key in records)
    found = [decode(entry, PublishedSkill) for entry in entries if entry is not None]
    shown: Sequence[PublishedSkill] = [one for one in found if one.listing is not None]
    # Each entry raises the version, so without one there was never an entry.
    if control is not None and known is not None and known.version == control.version:
        shown = [one for one in shown if not known.hits_skill(one)]
    elif control is not None:
        shown = without_hits(shown, await read_entries(block_keys(shown)))
    return {one.canonical: one for one in shown}


def _keys_for(skill: PublishedSkill) -> list[str]:
    return [target.key for target in all_targets(skill.identity, (skill.name,), skill.current_digest)]
