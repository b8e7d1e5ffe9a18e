"""Bundles as a kind of upstream: what was brought here by file, without what its registry withdrew since. Nobody is
asked over a network."""

from vskill_core.revocation_list import RevokedStatus
from vskill_core.statement import AttestedOrigin
from vskill_platform.domain.skills.upstream import Brought, LeftOutEntry, Offer, Upstream, UpstreamEntry
from vskill_platform.store.skills.bundles import KeptBundles, read_brought_list, read_bundles
from vskill_platform.store.stored_content import read_content


class BundleSource:
    """The skills of the latest bundles."""

    async def list_entries(self, upstream: Upstream) -> Offer:
        kept = await read_bundles(upstream.name)
        if kept is None:
            return Offer((), "no bundle was added yet", whole=False)
        withdrawn = await find_withdrawn(kept)
        entries: list[UpstreamEntry] = []
        left: list[LeftOutEntry] = []
        for one in kept.skills():
            if why := withdrawn.get(one.digest):
                left.append(LeftOutEntry(one.skill, f"It is withdrawn there: {why}"))
            else:
                entries.append(entry_of(one.skill, one.digest, one.description, one.version))
        return Offer(tuple(entries), f"in bundles of {kept.registry}", tuple(left))

    async def fetch(self, upstream: Upstream, entry: UpstreamEntry) -> Brought:
        files, kept = await read_content(entry.mark), await read_bundles(upstream.name)
        brought = next((one for one in kept.skills() if one.digest == entry.mark), None) if kept else None
        if kept is None or brought is None:
            return Brought(files, entry.version)
        signed = (brought.skill, brought.version, brought.key_id, brought.attestation)
        return Brought(files, entry.version, AttestedOrigin(kept.registry, *signed))


async def find_withdrawn(kept: KeptBundles) -> dict[str, str]:
    """Contents that the other registry withdrew, with the reason; what its owner yanked is no danger."""
    document = await read_brought_list(kept)
    return {one.digest: one.reason for one in document.entries if one.status is not RevokedStatus.YANKED}


def entry_of(skill: str, mark: str, description: str, version: str) -> UpstreamEntry:
    """A skill by the full name that it has in another registry of this kind."""
    *place, slug = skill.split("/")
    return UpstreamEntry("-".join(place).replace("~", "-"), slug, mark, {"path": skill}, description, version)
