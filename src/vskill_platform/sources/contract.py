"""The source contract: the files at a submission's place, now, or a typed reason why not.

Every source can `fetch`. A source that can also inspect a repository before anything is written (`Repositories`) lets
intake refuse a place without a skill; otherwise the run finds out.
"""

from collections.abc import Collection
from typing import Protocol, runtime_checkable

import msgspec

from vskill_core.content import SkillFile
from vskill_core.errors import SourceGone
from vskill_core.identity import Identity
from vskill_core.kind import Kind
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.sources.credential import GitCredential


def no_repository(host: str) -> SourceGone:
    """The error for a repository that the host does not show us, and for places that the submitter may not read."""
    return SourceGone(f"{host} has no public repository at that address.", host=host)


class Fetched(msgspec.Struct, frozen=True):
    """The content of a place."""

    files: tuple[SkillFile, ...]
    #: The commit, for sources that have one.
    commit: str | None = None
    #: Where it was found, if the host says that the repository has moved.
    identity: Identity | None = None


class Sources(Protocol):
    """Fetches. Raises SourceUnavailable if the host is down (not the content's fault), and NoSkillFound, SourceGone or
    LimitExceeded if a retry would not help."""

    async def fetch(self, submission: Submission) -> Fetched: ...


@runtime_checkable
class OpensPrivate(Protocol):
    """What a source offers that can fetch with a credential."""

    def using(self, credential: GitCredential) -> Sources:
        """The same source with this credential, for the repositories that it is for."""


class Place(msgspec.Struct, frozen=True):
    """A place that holds a skill or a plugin."""

    #: Where it is now: differs from the request if the host says that the repository has moved.
    identity: Identity
    #: Where it was seen: the repository's head, or the commit that was asked for.
    commit: str
    skill_md: bytes = b""
    #: Tells two states of the folder apart; only a survey says it.
    files: str = ""
    #: Without a word of its maintainer.
    kind: Kind = Kind.SKILL
    #: Of a plugin.
    manifest: SkillFile | None = None


class Survey(msgspec.Struct, frozen=True):
    """Every place of a repository, or of a folder in it, that holds a skill or a plugin; sorted by path."""

    #: Where the repository, or the folder in it, is now.
    identity: Identity
    places: tuple[Place, ...]
    #: There are more than are listed.
    truncated: bool = False
    #: Folders with a SKILL.md that no submission can name, each as shown text with the reason.
    skipped: tuple[str, ...] = ()
    #: Of the file of a marketplace, what it names and is not among the places, each as a sentence with what to do.
    elsewhere: tuple[str, ...] = ()

    def parts(self) -> dict[str, str]:
        """Places that are parts of a plugin, with the plugin's folder, by path."""
        plugins = {one.identity.path for one in self.places if one.kind is Kind.PLUGIN}
        found: dict[str, str] = {}
        for path in (one.identity.path for one in self.places):
            above = path
            while above:
                above = above.rpartition("/")[0]
                if above in plugins:
                    found[path] = above
                    break
        return found


@runtime_checkable
class Repositories(Protocol):
    """What a source of repositories offers to intake. Raises as `fetch` does; nothing is written."""

    async def inspect(self, identity: Identity, commit: str | None = None) -> Place:
        """The skill or plugin at exactly this place, as it is now or at this very commit; NoSkillFound says what was
        found instead."""

    async def survey(self, identity: Identity, commit: str | None = None) -> Survey:
        """Every skill and plugin at this place or below it, as it is now or at this very commit."""


class RepositoryHead(msgspec.Struct, frozen=True):
    """What a host says about a repository before anything is fetched."""

    #: Where it is now: another place than was asked for if the host says that it has moved.
    identity: Identity
    #: The head of the branch that it is followed at, or else of the default branch.
    commit: str
    #: The default branch's name, where the host tells it.
    branch: str | None = None


class FilesAtHead(msgspec.Struct, frozen=True):
    """Some files of a repository at the head of its default branch."""

    identity: Identity
    commit: str
    #: By path, the requested files that exist as plain files of a sane size.
    files: dict[str, bytes]
    #: Requested files that exist, but are links or too large.
    unread: tuple[str, ...] = ()
    #: When the commit says that it was made, in milliseconds; None where it does not say.
    committed_at: int | None = None


@runtime_checkable
class Watchable(Protocol):
    """What a source of repositories offers for repository checks. Raises as `fetch` does, and NoSkillFound for a
    repository without a commit."""

    async def head(self, identity: Identity) -> RepositoryHead:
        """The repository's head now."""

    async def look(self, identity: Identity, paths: Collection[str]) -> FilesAtHead:
        """These files, as they are now, whether or not there is a skill."""
