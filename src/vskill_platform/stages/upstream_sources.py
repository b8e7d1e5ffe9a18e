"""The kinds of upstreams: each lists the entries that there are, and fetches the files of one. What is done with them
is the same for all (`stages.upstreams`).

Git is asked by the same hardened code as for submissions, without credentials: only hosts that are allowed, no private
address, every answer bounded in bytes and time.
"""

import asyncio
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any, Protocol

import msgspec

from vskill_core.errors import (
    InvalidInput,
    InvalidManifest,
    LimitExceeded,
    NoSkillFound,
    PlatformError,
    SourceGone,
    StoreUnavailable,
    Unsupported,
)
from vskill_core.foreign_json import read_json
from vskill_core.identity import Identity, clean_path, normalise, submission_id
from vskill_core.kind import Kind
from vskill_core.naming import slug_of
from vskill_platform.domain.skills.git_list import MANIFEST
from vskill_platform.domain.skills.upstream import (
    MOST_OFFERED,
    Brought,
    LeftOutEntry,
    Offer,
    Upstream,
    UpstreamEntry,
    UpstreamKind,
)
from vskill_platform.domain.submissions import submission
from vskill_platform.domain.submissions.submission import Step
from vskill_platform.machine.slots import some_at_a_time
from vskill_platform.sources.contract import Place, Repositories, Survey, Watchable
from vskill_platform.stages.upstream_bundles import BundleSource
from vskill_platform.stages.upstream_registries import ClawhubSource, InstallationSource
from vskill_platform.worker_context import require_env
from vskill_scan.reading.manifest import read_manifest

#: Other repositories that one marketplace names and that are looked into.
MOST_REPOSITORIES = 100
_AT_ONCE = 4

#: Names of plugins by the folder that they take skills from.
Folders = dict[str, set[str]]


class UpstreamSource(Protocol):
    """One kind. Raises as fetching does: SourceUnavailable where the other side is down, another PlatformError where a
    retry would not help."""

    async def list_entries(self, upstream: Upstream) -> Offer:
        """What it has now, in any order; at most as many as can be listed are used."""

    async def fetch(self, upstream: Upstream, entry: UpstreamEntry) -> Brought:
        """The files of one entry, within the limits of a skill."""


class RepositorySource:
    """Every skill of one repository."""

    async def list_entries(self, upstream: Upstream) -> Offer:
        identity = normalise(upstream.address)
        survey = await _survey(identity)
        return Offer(
            await asyncio.to_thread(_entries, ((survey, {"": {identity.repo}}),)),
            f"at {survey.places[0].commit[:12]}" if survey.places else "",
            tuple(_skipped(survey)),
            whole=not survey.truncated,
        )

    async def fetch(self, upstream: Upstream, entry: UpstreamEntry) -> Brought:
        place = normalise(entry.where["url"], entry.where["path"])
        step = Step("upstream", require_env("kv").kv.now(), "system", "brought from an upstream")
        wanted = submission.create(
            submission_id=submission_id(place),
            identity=place,
            repo_url=place.url,
            skill_name=slug_of(place),
            step=step,
        )
        wanted = msgspec.structs.replace(wanted, commit=entry.where["commit"])
        fetched = await require_env("sources").sources.fetch(wanted)
        _require_unmoved(place, fetched.identity or place)
        return Brought(fetched.files, fetched.commit or "")


class _Plugin(msgspec.Struct, frozen=True):
    """One entry of a marketplace, as far as it is read."""

    name: str
    source: str | dict[str, Any] = ""
    #: the folders of its skills, where it names them
    skills: str | list[str] = []


class _Catalogue(msgspec.Struct, frozen=True):
    """The file of a marketplace. An entry of another form is left out alone."""

    plugins: list[msgspec.Raw] = []
    metadata: dict[str, Any] = {}


class MarketplaceSource(RepositorySource):
    """The skills of the plugins that a git marketplace names, in its own repository and in others."""

    async def list_entries(self, upstream: Upstream) -> Offer:
        identity = normalise(upstream.address)
        commit, catalogue = await _read_catalogue(identity)
        left: list[LeftOutEntry] = []
        wanted = await asyncio.to_thread(_wanted, upstream, catalogue, left)
        others = [place for place in wanted if place is not None]
        beyond = f"Only {MOST_REPOSITORIES} other repositories are looked into."
        left.extend(LeftOutEntry(place.url, beyond) for place in others[MOST_REPOSITORIES:])
        looked_at = others[:MOST_REPOSITORIES]
        found = await some_at_a_time(_survey_or_why, looked_at, _AT_ONCE)
        left.extend(one for one in found if isinstance(one, LeftOutEntry))
        both = zip(found, looked_at, strict=True)
        surveys = [(one, wanted[place]) for one, place in both if isinstance(one, Survey)]
        whole = len(surveys) == len(others)
        if None in wanted:
            surveys.append((await _survey_of_marketplace(identity, commit), wanted[None]))
        left.extend(one for survey, _ in surveys for one in _skipped(survey))
        return Offer(
            await asyncio.to_thread(_entries, surveys),
            f"at {commit[:12]}",
            tuple(left),
            whole=whole and not any(survey.truncated for survey, _ in surveys),
        )


SOURCES: dict[UpstreamKind, UpstreamSource] = {
    UpstreamKind.REPOSITORY: RepositorySource(),
    UpstreamKind.MARKETPLACE: MarketplaceSource(),
    UpstreamKind.CLAWHUB: ClawhubSource(),
    UpstreamKind.REGISTRY: InstallationSource(),
    UpstreamKind.BUNDLE: BundleSource(),
}


# Repositories.


async def _survey(identity: Identity, commit: str | None = None) -> Survey:
    sources = require_env("sources").sources
    if not isinstance(sources, Repositories):
        raise Unsupported("The configured source cannot look into repositories.")
    survey = await sources.survey(identity, commit)
    _require_unmoved(identity, survey.identity)
    # Of a plugin its skills are taken in, each on its own.
    skills = tuple(one for one in survey.places if one.kind is Kind.SKILL)
    return msgspec.structs.replace(survey, places=skills)


async def _survey_of_marketplace(identity: Identity, commit: str) -> Survey:
    """Its own repository at the commit of its list; without a skill it is no error, because others may have some."""
    try:
        return await _survey(identity, commit)
    except NoSkillFound:
        return Survey(identity, ())


async def _survey_or_why(identity: Identity) -> Survey | LeftOutEntry:
    """One that cannot be looked into does not keep back the others."""
    try:
        return await _survey(identity)
    except StoreUnavailable:
        raise
    except PlatformError as error:
        return LeftOutEntry(identity.key, error.message)


def _require_unmoved(asked: Identity, found: Identity) -> None:
    """What lies at another address is somebody else's, until an admin says otherwise."""
    if found.repo_key != asked.repo_key:
        message = f"The repository {asked.url} moved to {found.url}."
        raise SourceGone(f"{message} Change the upstream's address if that is meant.")


def _entries(surveys: Iterable[tuple[Survey, Folders]]) -> tuple[UpstreamEntry, ...]:
    """The skills below these folders, each once under every name; at most one more than an upstream may offer."""
    found = (
        entry
        for survey, folders in surveys
        for place in survey.places
        for entry in _entries_at(place, folders)
    )
    return tuple(islice(found, MOST_OFFERED + 1))


def _entries_at(place: Place, folders: Folders) -> Iterator[UpstreamEntry]:
    above, names = place.identity.path, set(folders.get("", ()))
    while above:
        names |= folders.get(above, set())
        above = above.rpartition("/")[0]
    if not names:
        return
    slug = slug_of(place.identity)
    where = {"url": place.identity.url, "path": place.identity.path, "commit": place.commit}
    try:
        about = read_manifest(place.skill_md, slug).description
    except InvalidManifest:
        about = ""
    yield from (UpstreamEntry(name, slug, place.files, where, about) for name in sorted(names))


def _skipped(survey: Survey) -> Iterator[LeftOutEntry]:
    for name in survey.skipped:
        yield LeftOutEntry(name, "No address can hold the folder's name.")
    if survey.truncated:
        yield LeftOutEntry("", f"{survey.identity.url} has more skills than are listed of one repository.")


# Marketplaces.


async def _read_catalogue(identity: Identity) -> tuple[str, _Catalogue]:
    sources = require_env("sources").sources
    if not isinstance(sources, Watchable):
        raise Unsupported("The configured source cannot look into repositories.")
    look = await sources.look(identity, (MANIFEST,))
    _require_unmoved(identity, look.identity)
    if MANIFEST in look.unread:
        raise LimitExceeded(f"{MANIFEST} is larger than is read, or no plain file.", limit="bytes_file")
    if MANIFEST not in look.files:
        raise NoSkillFound(f"The repository has no {MANIFEST}, so it is no marketplace.")
    try:
        return look.commit, read_json(look.files[MANIFEST], _Catalogue)
    except msgspec.DecodeError as error:
        raise InvalidInput(f"{MANIFEST} is not the list of a marketplace: {error}", field="address") from None


def _plugins(catalogue: _Catalogue, left: list[LeftOutEntry]) -> Iterator[_Plugin]:
    for number, raw in enumerate(catalogue.plugins, 1):
        try:
            yield read_json(raw, _Plugin)
        except msgspec.DecodeError as error:
            left.append(LeftOutEntry(f"entry {number}", f"It has another form: {str(error)[:200]}"))


def _wanted(
    upstream: Upstream, catalogue: _Catalogue, left: list[LeftOutEntry]
) -> dict[Identity | None, Folders]:
    """What plugins take of each place in another repository, and of the marketplace's own (None)."""
    root = catalogue.metadata.get("pluginRoot", "")
    found: dict[Identity | None, Folders] = {}
    for plugin in _plugins(catalogue, left):
        if not _may_fit(upstream, plugin):
            continue
        try:
            place = _place_of(plugin, root if isinstance(root, str) else "")
        except InvalidInput as error:
            left.append(LeftOutEntry(plugin.name[:100], error.message))
            continue
        repository, folder = (None, place) if isinstance(place, str) else (place, place.path)
        named = [plugin.skills] if isinstance(plugin.skills, str) else plugin.skills
        try:
            folders = [clean_path(f"{folder}/{one}", "skills") for one in named] or [folder]
        except InvalidInput:
            folders = [folder]
        for one in folders:
            found.setdefault(repository, {}).setdefault(one, set()).add(plugin.name)
    return found


def _may_fit(upstream: Upstream, plugin: _Plugin) -> bool:
    """Whether a pattern may want a skill of this plugin, so that no repository is looked into for nothing."""
    heads = [pattern.partition("/")[0] for pattern in upstream.patterns]
    return not heads or any(fnmatchcase(plugin.name.lower(), head) for head in heads)


def _place_of(plugin: _Plugin, root: str) -> Identity | str:
    """The folder in the marketplace's own repository, or the place in another one."""
    source = plugin.source
    if isinstance(source, str):
        return clean_path(f"{root}/{source}" if root and not source.startswith("./") else source, "source")
    kind, path = source.get("source"), source.get("path") or ""
    address = source.get("repo") if kind == "github" else source.get("url")
    if (
        kind not in ("github", "url", "git-subdir")
        or not isinstance(address, str)
        or not isinstance(path, str)
    ):
        raise InvalidInput(f"Its source {str(kind)[:40]!r} is no git repository.", field="source")
    return normalise(address, path)
