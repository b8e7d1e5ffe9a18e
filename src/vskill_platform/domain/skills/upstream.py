"""Upstreams: other people's marketplaces, repositories and registries, and what of them may come here.

An upstream has a short name and places of its own, `upstream~NAME/REPO/SLUG`, so that its skills are nobody else's.
What it offers is a list of entries; each tells by its `mark` whether it is still the same. A source of one kind
(`stages.upstream_sources`) lists entries and fetches the files of one; everything else is the same for all kinds.
"""

import enum
import fnmatch
from collections.abc import Iterable, Mapping

import msgspec

from vskill_core.content import SkillFile
from vskill_core.errors import InvalidInput
from vskill_core.identity import UPSTREAM_HOST, Identity, upstream_identity
from vskill_core.naming import slugify
from vskill_core.statement import AttestedOrigin
from vskill_platform.domain import keys

#: Entries of one upstream that are listed; those beyond are said.
MOST_ENTRIES = 5_000
#: An upstream that offers more is refused before its entries are looked at one by one.
MOST_OFFERED = 100_000
MOST_DESCRIPTION = 300
#: Entries left out, and withdrawn ones, that are named on the page.
MOST_NAMED = 100
#: What one upstream brings in an hour by itself.
BROUGHT_PER_HOUR = 2_500
SYNC_EVERY_MS = 24 * 3_600_000
#: After a synchronisation that failed.
RETRY_AFTER_MS = 3_600_000


class UpstreamKind(enum.StrEnum):
    """What an upstream is."""

    MARKETPLACE = "marketplace"
    REPOSITORY = "repository"
    CLAWHUB = "clawhub"
    #: another installation of this platform
    REGISTRY = "registry"
    BUNDLE = "bundle"


class Intake(enum.StrEnum):
    """How its entries come."""

    #: each when somebody asks for it
    ON_REQUEST = "on-request"
    #: all that fit the patterns, a bounded number an hour
    ALL = "all"
    #: none: the memory knows all that fit, so that submissions are compared with them
    REMEMBERED = "remembered"


class UpstreamEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One skill that an upstream offers."""

    #: the two last parts of its canonical name
    repo: str
    slug: str
    #: tells two states of it apart: a digest of its files, or a version
    mark: str
    #: what its kind fetches it by
    where: Mapping[str, str] = {}
    description: str = ""
    #: the upstream's own number
    version: str = ""

    @property
    def name(self) -> str:
        """What patterns are compared with."""
        return f"{self.repo}/{self.slug}"


class LeftOutEntry(msgspec.Struct, frozen=True):
    """An entry that is not listed, and why."""

    #: empty: more than one
    name: str
    reason: str


class Offer(msgspec.Struct, frozen=True):
    """What an upstream has now."""

    entries: tuple[UpstreamEntry, ...]
    #: what it shows of its own state, such as `at 0123456789ab`
    found: str = ""
    left_out: tuple[LeftOutEntry, ...] = ()
    #: whether the entries are all that there are: only then is a missing one gone
    whole: bool = True
    #: of another installation, the public keys to keep, as JSON Web Keys
    keys: tuple[dict[str, str], ...] = ()


class Brought(msgspec.Struct, frozen=True):
    """The files of one entry."""

    files: tuple[SkillFile, ...]
    #: the upstream's commit or version
    commit: str = ""
    #: what another registry signed about them
    origin: AttestedOrigin | None = None


class LookState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What looks found at a place that somebody had followed, or at an upstream."""

    checked_at: int | None = None
    #: What the last one that succeeded did.
    found: str = ""
    #: Why the last one did not; empty where it did.
    problem: str = ""
    #: When those go on that wait because an hour's runs are used up; 0 where none does.
    go_on_at: int = 0


class UpstreamState(LookState, frozen=True, omit_defaults=True):
    """What synchronisations found."""

    #: when the last one succeeded
    good_at: int | None = None
    listed: int = 0
    #: the public keys that another installation had at the first look, as JSON Web Keys
    keys: tuple[dict[str, str], ...] = ()
    left_out: tuple[LeftOutEntry, ...] = ()
    #: names that came from here and that the upstream has no longer, or took back, with the reason
    withdrawn: Mapping[str, str] = {}


class Upstream(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record at `upstream:{name}`."""

    name: str
    kind: UpstreamKind
    #: its address; a bundle's: how it came
    address: str
    #: which entries may come, as `REPO/SLUG` with `*` for any characters; empty: all
    patterns: tuple[str, ...] = ()
    intake: Intake = Intake.ON_REQUEST
    paused: bool = False
    by: str
    created_at: int = 0
    changed_at: int = 0
    state: UpstreamState = UpstreamState()

    @property
    def key(self) -> str:
        return keys.upstream(self.name)

    @property
    def namespace(self) -> str:
        return upstream_namespace(self.name)

    def is_same(self, other: "Upstream") -> bool:
        """Whether what it asks for is the same."""
        return self.changed_at == other.changed_at

    def due_at(self) -> int:
        """When it is to be synchronised; a paused one never is, and nobody asks."""
        state = self.state
        if state.checked_at is None:
            return 0
        in_turn = state.checked_at + (RETRY_AFTER_MS if state.problem else SYNC_EVERY_MS)
        return min(in_turn, state.go_on_at or in_turn)

    def wants(self, entry: UpstreamEntry) -> bool:
        return not self.patterns or any(fnmatch.fnmatchcase(entry.name, one) for one in self.patterns)

    def place_of(self, entry: UpstreamEntry) -> Identity:
        return upstream_identity(self.name, entry.repo, entry.slug)


class UpstreamEntries(msgspec.Struct, frozen=True):
    """The record at `upstream_entries:{name}`: what was listed last."""

    entries: tuple[UpstreamEntry, ...] = ()
    #: since when they are as they are
    at: int = 0

    def find(self, name: str) -> UpstreamEntry | None:
        return next((one for one in self.entries if one.name == name), None)


def upstream_namespace(name: str) -> str:
    return f"{UPSTREAM_HOST}~{name}"


def upstream_in(namespace: str) -> str | None:
    """The upstream whose skills a namespace holds; None for other namespaces."""
    host, _, name = namespace.partition("~")
    return name if host == UPSTREAM_HOST and name else None


def settle(
    upstream: Upstream, offer: Offer, known: UpstreamEntries
) -> tuple[tuple[UpstreamEntry, ...], tuple[LeftOutEntry, ...]]:
    """The entries to list: wanted, with names that an address can hold, each name once. Of two with one name that one
    keeps it that had it before; the first otherwise."""
    if len(offer.entries) > MOST_OFFERED:
        message = f"The upstream offers more than {MOST_OFFERED} entries."
        raise InvalidInput(message, field="patterns", fix="name a smaller upstream")
    before = {one.name: one for one in known.entries}
    chosen: dict[str, UpstreamEntry] = {}
    left: list[LeftOutEntry] = list(offer.left_out)
    for entry in filter(upstream.wants, _named(offer.entries, left)):
        other, had = chosen.get(entry.name), before.get(entry.name)
        if other is not None and (had is None or had.where.get("path") != entry.where.get("path")):
            left.append(LeftOutEntry(entry.name, "Another entry has this name."))
            continue
        if other is not None:
            left.append(LeftOutEntry(other.name, "Another entry had this name first."))
        chosen[entry.name] = msgspec.structs.replace(entry, description=entry.description[:MOST_DESCRIPTION])
    listed = tuple(chosen[name] for name in sorted(chosen))
    if len(listed) > MOST_ENTRIES:
        more = len(listed) - MOST_ENTRIES
        left.append(
            LeftOutEntry(
                "", f"{more} more entries than the {MOST_ENTRIES} that are listed; narrow the patterns."
            )
        )
    return listed[:MOST_ENTRIES], tuple(left)


def _named(entries: Iterable[UpstreamEntry], left: list[LeftOutEntry]) -> Iterable[UpstreamEntry]:
    for entry in entries:
        named = msgspec.structs.replace(entry, repo=slugify(entry.repo), slug=slugify(entry.slug))
        try:
            upstream_identity("x", named.repo, named.slug)
        except InvalidInput as error:
            left.append(LeftOutEntry(entry.name[:100], error.message))
        else:
            yield named
