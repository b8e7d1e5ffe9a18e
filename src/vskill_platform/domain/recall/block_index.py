"""The whole blocklist as of one version, and which of its entries hit a skill."""

from collections.abc import Iterable

import msgspec

from vskill_core.identity import Identity
from vskill_core.naming import slug_of
from vskill_platform.domain.blocklist import BlockEntry, BlockTarget, targets_of
from vskill_platform.domain.canonical_names import clash_slug
from vskill_platform.domain.people.namespace import Audiences, includes, may_read
from vskill_platform.domain.skills.skill import PublishedSkill, PublishedSkillSummary, VersionRef


class Blocklist(msgspec.Struct, frozen=True):
    """The whole blocklist as of one version."""

    version: int
    entries: dict[BlockTarget, BlockEntry]
    #: By `host/owner/repo`: entries about some of the repository's skills, which taint its others.
    tainted: dict[str, tuple[BlockEntry, ...]]

    def hits(
        self, identity: Identity, names: tuple[str | None, ...], digest: str | None = None
    ) -> tuple[BlockEntry, ...]:
        """The entries that hit a skill, the worst first."""
        if not self.entries:
            return ()
        targets = all_targets(identity, names, digest)
        found = [self.entries[target] for target in targets if target in self.entries]
        return tuple(sorted(found, key=lambda entry: -entry.severity.rank))

    def hits_skill(self, skill: PublishedSkill) -> tuple[BlockEntry, ...]:
        """The entries that hit a published skill with its current content."""
        return self.hits(skill.identity, (skill.name,), skill.current_digest)

    def hits_version(self, skill: PublishedSkill, ref: VersionRef) -> tuple[BlockEntry, ...]:
        return self.hits(skill.identity, (ref.name,), ref.digest)

    def hits_summary(self, skill: PublishedSkillSummary) -> tuple[BlockEntry, ...]:
        """The same for a skill as lists of the whole registry know it."""
        if skill.identity is None:
            return ()
        return self.hits(skill.identity, (skill.name,), skill.current_digest)

    def taint(self, identity: Identity, audience: str) -> BlockEntry | None:
        """An entry that taints a skill of this audience; one that not every reader of the skill may see does not."""
        entries = self.tainted.get(identity.repo_key, ())
        return next((entry for entry in entries if includes(entry.audience, audience)), None)

    def shown_to(self, audiences: Audiences) -> "Blocklist":
        shown = {
            target: entry.shown_to(audiences)
            for target, entry in self.entries.items()
            if may_read(entry.audience, audiences)
        }
        tainted = {
            repo: tuple(shown[entry.target] for entry in entries if entry.target in shown)
            for repo, entries in self.tainted.items()
        }
        return Blocklist(self.version, shown, {repo: entries for repo, entries in tainted.items() if entries})


def version_targets(skill: PublishedSkill, ref: VersionRef) -> tuple[BlockTarget, ...]:
    """Every target that would hit this version of a published skill."""
    return all_targets(skill.identity, (ref.name,), ref.digest)


def all_targets(
    identity: Identity, names: Iterable[str | None], digest: str | None = None
) -> tuple[BlockTarget, ...]:
    """Every target that would hit a skill at this place: the same for whoever asks, before and after it is live."""
    slug = slug_of(identity)
    known = [name for name in names if name is not None]
    return targets_of(identity, (*known, slug, clash_slug(slug, identity)), digest)
