"""What may not be published: typed targets, and how two entries for one target become one.

Intake, publishing, lists, search, detail and download compute `targets_of` for what they hold and look those
up; an entry is effective as soon as it is written. A target says what kind of thing it blocks, so a block of
one place never reaches another skill that happens to have the same name.
"""

import enum
from collections.abc import Iterable

import msgspec

from vskill_core.errors import InvalidInput
from vskill_core.findings import Severity
from vskill_core.identity import UPSTREAM_HOST, Identity, parse_place, upstream_identity
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import PUBLIC, SEVERAL, Audiences, includes, may_read, widest

#: How the reason of what an entry hits begins.
BLOCK_REASON = "blocked ("

_HEX = frozenset("0123456789abcdef")
_DIGEST_LENGTH = 64


class TargetKind(enum.StrEnum):
    """How far a block reaches."""

    #: one skill in one repository
    PLACE = "place"
    REPOSITORY = "repository"
    #: exactly these bytes, wherever they are
    DIGEST = "digest"
    #: every skill of this name
    NAME = "name"


class BlockTarget(msgspec.Struct, frozen=True, order=True):
    """What an entry blocks; make it by one of the functions below, which normalise the value."""

    kind: TargetKind
    value: str

    def __str__(self) -> str:
        return f"{self.kind.value} {self.value}"

    @property
    def key(self) -> str:
        return keys.block(self.kind.value, self.value)


class BlockEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `block:{target}`."""

    target: BlockTarget
    severity: Severity
    #: never empty
    reason: str
    #: who and when of the first discovery; a later entry for the target does not change them
    discovered_by: str
    discovered_at: int
    updated_at: int = 0
    threat_type: str = ""
    #: URLs, rule ids and the like; sorted
    evidence: tuple[str, ...] = ()
    #: how the skill was called and where it was found, for people
    skill_name: str = ""
    source_url: str = ""
    #: of its SKILL.md, for clients that know only that
    content_hash: str = ""
    #: the content that it was found in; a target that is a digest says it itself
    digest: str = ""
    #: whose readers may see the entry: the widest of what it hits, so public if anything of that is
    audience: str = PUBLIC
    #: the audience of the skill that its names and evidence are about, which can be another than the one that it hits
    #: for a reader
    origin: str = PUBLIC

    def shown_to(self, audiences: Audiences) -> "BlockEntry":
        """The entry without the names of a skill that a reader of these audiences may not read."""
        if may_read(self.origin, audiences):
            return self
        hidden = {"evidence": (), "skill_name": "", "source_url": "", "content_hash": "", "digest": ""}
        return msgspec.structs.replace(self, **hidden)


def place_target(identity: Identity) -> BlockTarget:
    return BlockTarget(TargetKind.PLACE, identity.key)


def repository_target(identity: Identity) -> BlockTarget:
    return BlockTarget(TargetKind.REPOSITORY, identity.repo_key)


def digest_target(digest: str) -> BlockTarget:
    """A content wherever it is; as `DIGEST@NAME` only what the upstream of that name brought."""
    content, at, upstream = digest.strip().lower().partition("@")
    if len(content) != _DIGEST_LENGTH or not _HEX.issuperset(content):
        raise InvalidInput("The digest is not valid.", field="digest", fix="give 64 hexadecimal digits")
    owner = upstream_identity(upstream, "any", "any").owner if at else ""
    return BlockTarget(TargetKind.DIGEST, f"{content}{at}{owner}")


def name_target(name: str) -> BlockTarget:
    folded = " ".join(name.split()).casefold()
    if not folded:
        raise InvalidInput("The name is empty.", field="name", fix="give the skill's name")
    return BlockTarget(TargetKind.NAME, folded)


def parse_target(kind: str, text: str) -> BlockTarget:
    """A target as a person writes it: an address for a place or a repository, otherwise the value itself."""
    match TargetKind(kind):
        case TargetKind.PLACE:
            return place_target(parse_place(text))
        case TargetKind.REPOSITORY:
            return repository_target(parse_place(text))
        case TargetKind.DIGEST:
            return digest_target(text)
        case _:
            return name_target(text)


def targets_of(
    identity: Identity, names: Iterable[str] = (), digest: str | None = None
) -> tuple[BlockTarget, ...]:
    """Every target that would hit this skill: its place, its repository, each of its names, its content.

    For an upload the repository is the account's whole namespace.
    """
    targets = {place_target(identity), repository_target(identity)}
    targets.update(name_target(name) for name in names if name.strip())
    if digest is not None:
        targets.add(digest_target(digest))
        if identity.host == UPSTREAM_HOST:
            targets.add(digest_target(f"{digest}@{identity.owner}"))
    return tuple(sorted(targets))


def merge(old: BlockEntry, new: BlockEntry) -> BlockEntry:
    """One entry out of two for the same target: nothing that was known about it is lost."""
    if old.target != new.target:
        raise InvalidInput(
            "The entries block different targets.", field="target", fix="merge entries of one target only"
        )
    first = min(old, new, key=lambda entry: (entry.discovered_at, entry.discovered_by))
    worse = old if old.severity.rank >= new.severity.rank else new
    milder = new if worse is old else old
    # Hash and digest are of one content.
    hashed = max(old, new, key=lambda entry: (bool(entry.content_hash), bool(entry.digest)))
    return BlockEntry(
        target=old.target,
        severity=worse.severity,
        reason=worse.reason,
        discovered_by=first.discovered_by,
        discovered_at=first.discovered_at,
        updated_at=max(old.updated_at, new.updated_at),
        threat_type=worse.threat_type or milder.threat_type,
        evidence=tuple(sorted({*old.evidence, *new.evidence})),
        skill_name=old.skill_name or new.skill_name,
        source_url=old.source_url or new.source_url,
        content_hash=hashed.content_hash,
        digest=hashed.digest,
        audience=widest((old.audience, new.audience)) or SEVERAL,
        # Names and evidence are joined, so they are for those only who may read both skills.
        origin=_narrowest(old.origin, new.origin),
    )


def _narrowest(one: str, other: str) -> str:
    if includes(one, other):
        return other
    return one if includes(other, one) else SEVERAL


def worst_of(entries: Iterable[BlockEntry]) -> BlockEntry | None:
    """The entry that counts where several hit; None without any."""
    return max(entries, key=lambda entry: (entry.severity.rank, entry.target), default=None)


def hit_reason(entries: Iterable[BlockEntry]) -> str | None:
    worst = worst_of(entries)
    return None if worst is None else f"{BLOCK_REASON}{worst.target}): {worst.reason}"
