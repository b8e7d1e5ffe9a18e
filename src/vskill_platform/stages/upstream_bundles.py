"""Bundles as a kind of upstream: what was brought here by file, without what its registry withdrew since. Nobody is
asked over a network."""

from vskill_core.revocation_list import RevokedStatus
from vskill_platform.domain.skills.upstream import Brought, LeftOutEntry, Offer, Upstream, UpstreamEntry
from vskill_platform.store.skills.bundles import BroughtSkill, KeptBundles, read_brought_list, read_bundles
from vskill_platform.store.stored_content import read_content


class BundleSource:
    """The skills of the latest bundles."""

    async def list_entries(self, upstream: Upstream) -> Offer:
        kept = await read_bundles(upstream.name)
        if kept is None:
            return Offer((), "no bundle was added yet", whole=False)
        withdrawn = await find_withdrawn(kept)
        skills = tuple(kept.skills())
        return Offer(
            tuple(_entry(one) for one in skills if one.digest not in withdrawn),
            f"in bundles of {kept.registry}",
            tuple(
                LeftOutEntry(one.skill, f"It is withdrawn there: {withdrawn[one.digest]}")
                for one in skills
                if one.digest in withdrawn
            ),
        )

    async def fetch(self, _upstream: Upstream, entry: UpstreamEntry) -> Brought:
        return Brought(await read_content(entry.mark), entry.version)


async def find_withdrawn(kept: KeptBundles) -> dict[str, str]:
    """Contents that the other registry withdrew, with the reason; what its owner yanked is no danger."""
    document = await read_brought_list(kept)
    return {one.digest: one.reason for one in document.entries if one.status is not RevokedStatus.YANKED}


def _entry(one: BroughtSkill) -> UpstreamEntry:
    *place, slug = one.skill.split("/")
    repo = "-".join(place).replace("~", "-")
    return UpstreamEntry(repo, slug, one.digest, {"path": one.skill}, one.description, one.version)
