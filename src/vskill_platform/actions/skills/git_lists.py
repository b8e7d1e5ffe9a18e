"""Lists of skills that clients clone: of the registry, of an owner and of a collection, each in one form per audience.

A list names every skill that its readers may read: what can be installed with the address of its own repository, what
was withdrawn as a plugin without skills, because clients keep what only disappears from a list. It is made of records
alone and kept in the content store (`store.skills.git_lists`), with a mark where the registry's address belongs.
"""

import hashlib
from collections.abc import AsyncIterator, Mapping
from itertools import chain
from urllib.parse import quote

import msgspec

from vskill_core.content import SkillFile
from vskill_core.errors import NotFound, NotSignedIn
from vskill_core.naming import hyphenate
from vskill_platform.actions import principal
from vskill_platform.actions.action import Services
from vskill_platform.actions.skills.collections import read_collection
from vskill_platform.actions.skills.scopes import AT_ONCE, describe_skill, has_skills
from vskill_platform.actions.skills.skill_names import current_blocklist, name_skills
from vskill_platform.actions.skills.upstream_entries import readable_upstream
from vskill_platform.domain.people import namespace
from vskill_platform.domain.skills import git_list
from vskill_platform.domain.skills.names import candidate_names
from vskill_platform.domain.skills.skill import PublishedSkill, listed_version
from vskill_platform.domain.skills.upstream import UpstreamEntries
from vskill_platform.store.people.namespaces import read_access, read_directory
from vskill_platform.store.skills.collections import Collection
from vskill_platform.store.skills.git_lists import MadeList, current_list, read_list
from vskill_platform.store.skills.skills import iter_readable, read_skills
from vskill_platform.store.skills.upstreams import read_upstream_entries


class ListScope(msgspec.Struct, frozen=True):
    """What a list holds, and for whom."""

    #: the path of its address
    path: str
    #: its readers, without what one of them has beyond the others
    reader: principal.Principal
    #: tells lists of the same address for different readers apart
    form: str
    #: the marketplace's name, owner and description
    name: str
    owner: str
    about: str
    #: the beginning of canonical names
    prefix: str = ""
    collection: Collection | None = None
    #: what an upstream has beside what was verified of it
    upstream: UpstreamEntries | None = None

    @property
    def changed_at(self) -> int:
        """Of what it is made of beside skills."""
        changed = 0 if self.collection is None else self.collection.updated_at
        return changed if self.upstream is None else self.upstream.at


async def current_git_list(
    services: Services, scope: ListScope, *, is_lost: bool = False
) -> git_list.GitList:
    """The list to serve now; `is_lost`: its files cannot be read here, so it is made again."""
    blocklist = await current_blocklist(services)
    marks = git_list.ListMarks(None, blocklist.version, (await read_access())[1], scope.changed_at)
    return await current_list(scope.path, scope.form, marks, lambda: _make(services, scope), is_lost=is_lost)


async def read_git_list(served: git_list.ServedList) -> tuple[SkillFile, ...] | None:
    """Its files, with the mark in place of the registry's address; None where they are not here as they were made."""
    return await read_list(served)


# Scopes and their readers.


async def public_scope(services: Services, reader: principal.Principal) -> ListScope:
    """Everything that everybody may read whom the registry lets in."""
    named = services.settings.registry_name
    about = f"Every skill that {named} has verified."
    return ListScope(
        "marketplace", await principal.public_reader(reader), "readers", _dashed(named), named, about
    )


async def internal_scope(services: Services, reader: principal.Principal) -> ListScope:
    """What every account may read; NotSignedIn for all others."""
    if reader.account is None and not reader.operator:
        raise NotSignedIn
    named = services.settings.registry_name
    own, everybody = await principal.document_reader(reader), namespace.internal_form(await read_directory())
    name, about = f"{_dashed(named)}-internal", f"Every skill that {named} has verified for its accounts."
    return ListScope("internal/marketplace", own, _form(own, everybody), name, named, about)


async def owner_scope(services: Services, reader: principal.Principal, owner: str) -> ListScope:
    """What the reader may read of one owner; NotFound where that is nothing, and never was."""
    for written in dict.fromkeys((owner, owner.lower())):
        form = await principal.namespace_reader(reader, written)
        if await has_skills(form, f"{written}/"):
            known = {namespace.PUBLIC, namespace.INTERNAL} | namespace.namespace_audiences(written)
            form = msgspec.structs.replace(form, audiences=_names(form) & known)
            about = f"What {services.settings.registry_name} has verified of {written}."
            return ListScope(
                written, form, _form(form), _dashed(written), written, about, prefix=f"{written}/"
            )
    raise NotFound(f"There is no skill in {owner[:200]}.", scope=owner[:200])


async def collection_scope(services: Services, reader: principal.Principal, name: str) -> ListScope:
    """A collection, as all of its readers may read it."""
    found = await read_collection(services, reader, name)
    form = await principal.common_reader(reader, found.audience)
    about = found.description or found.title or f"The collection {found.name}."
    return ListScope(
        f"collections/{found.name}",
        form,
        _form(form, namespace.common_audiences(found.audience, await read_directory())),
        found.name,
        services.settings.registry_name,
        about,
        collection=found,
    )


async def upstream_scope(reader: principal.Principal, name: str) -> ListScope:
    """An upstream: what was verified of it, and what can be asked for."""
    upstream = await readable_upstream(reader, name)
    form = await principal.namespace_reader(reader, upstream.namespace)
    known = {namespace.PUBLIC, namespace.INTERNAL} | namespace.namespace_audiences(upstream.namespace)
    form = msgspec.structs.replace(form, audiences=_names(form) & known)
    about = f"What {upstream.name} has; of it, only what was verified can be installed."
    return ListScope(
        f"upstreams/{upstream.name}",
        form,
        _form(form),
        upstream.name,
        upstream.name,
        about,
        prefix=f"{upstream.namespace}/",
        upstream=await read_upstream_entries(upstream.name),
    )


def _form(reader: principal.Principal, everybody: frozenset[str] | None = None) -> str:
    """`readers` for what all readers of the address have in common; a reader who has less of it, as by a token for one
    namespace, has a list of its own, and so has each kind of reader of a namespace."""
    own = _names(reader)
    return "readers" if own == everybody else hashlib.sha256(" ".join(sorted(own)).encode()).hexdigest()[:16]


def _names(reader: principal.Principal) -> frozenset[str]:
    """What a reader was narrowed to is never everything."""
    found = principal.audiences_of(reader)
    return frozenset[str]() if isinstance(found, namespace.Everything) else found


def _dashed(text: str) -> str:
    return hyphenate(text) or "skills"


# The list.


async def _make(services: Services, scope: ListScope) -> MadeList:
    blocklist = await current_blocklist(services)
    plugins: dict[str, bytes] = {}
    tombstones: list[tuple[SkillFile, ...]] = []
    changed_at = scope.changed_at
    known: set[str] = set()
    async for skills in _skills_of(scope):
        known.update(skill.canonical for skill in skills)
        for name, skill in (await name_skills(scope.reader, skills)).items():
            if skill.current_version is None:
                plugins[name] = _withdrawn_entry(name, skill)
                tombstones.append(git_list.tombstone(name, skill))
            elif blocklist.hits_skill(skill):
                # It gets its tombstone and its next number with the pass that takes its versions down.
                continue
            else:
                plugins[name] = _entry(name, skill)
            changed_at = max(changed_at, skill.updated_at)
    verified = len(plugins) - len(tombstones)
    plugins |= _placeholders(scope, known, plugins)
    head = {"name": scope.name, "owner": {"name": scope.owner}, "metadata": {"description": scope.about}}
    listed = b",\n".join(plugins.values())
    document = msgspec.json.encode(head)[:-1] + b',"plugins":[\n' + listed + b"\n]}\n"
    manifest = SkillFile(git_list.MANIFEST, "100644", document)
    readme = SkillFile("README.md", "100644", _readme(scope).encode())
    message = f"{scope.name}: {verified} skills, {len(tombstones)} withdrawn"
    return MadeList((manifest, readme, *chain.from_iterable(tombstones)), changed_at, message)


async def _skills_of(scope: ListScope) -> AsyncIterator[list[PublishedSkill]]:
    audiences = principal.audiences_of(scope.reader)
    if scope.collection is not None:
        found = await read_skills(scope.collection.skills, audiences=audiences)
        yield [found[name] for name in scope.collection.skills if name in found and found[name].versions]
        return
    batch: list[PublishedSkill] = []
    async for skill in iter_readable(scope.prefix, audiences=audiences):
        if skill.versions:
            batch.append(skill)
        if len(batch) == AT_ONCE:
            yield batch
            batch = []
    yield batch


def _entry(name: str, skill: PublishedSkill) -> bytes:
    number = listed_version(skill)
    own = "" if number == skill.current_version else f" (version {skill.current_version})"
    facts: dict[str, object] = {
        "name": name,
        "version": number,
        "description": describe_skill(skill) + own,
        "author": {"name": skill.identity.owner},
        "category": skill.about.category,
        **({"license": skill.about.licence} if skill.about.licence not in ("none", "other") else {}),
    }
    return _with_source(facts, skill.canonical)


def _placeholders(scope: ListScope, known: set[str], taken: Mapping[str, bytes]) -> dict[str, bytes]:
    """Entries of an upstream of which nothing was verified yet: their repository is the address to ask at. What has no
    address here is left out."""
    made: dict[str, bytes] = {}
    for entry in scope.upstream.entries if scope.upstream is not None else ():
        canonical = f"{scope.prefix}{entry.name}"
        if canonical in known:
            continue
        name = next(one for one in candidate_names(canonical) if one not in taken and one not in made)
        facts = {"name": name, "version": "0.0.0", "description": f"Not verified yet. {entry.description}"}
        made[name] = _with_source(facts, canonical)
    return made


def _with_source(facts: Mapping[str, object], canonical: str) -> bytes:
    # The place is percent-encoded, so nothing in it needs escaping.
    address = "/".join(quote(part, safe="") for part in canonical.split("/")).encode()
    rest = b',"homepage":"%b/skills/%b","source":{"source":"url","url":"%b/marketplace/%b.git"}}'
    return msgspec.json.encode(facts)[:-1] + rest % (git_list.BASE, address, git_list.BASE, address)


def _withdrawn_entry(name: str, skill: PublishedSkill) -> bytes:
    return msgspec.json.encode(
        {
            "name": name,
            "version": git_list.withdrawn_number(skill),
            "description": git_list.say_withdrawn(skill),
            "source": f"./{git_list.WITHDRAWN}/{name}",
        }
    )


def _readme(scope: ListScope) -> str:
    return (
        f"# {scope.name}\n\n{scope.about}\n\n"
        "This repository is made by the registry and has one commit. Add it to a client as a plugin marketplace. "
        f"What is in `{git_list.WITHDRAWN}/` was withdrawn: a client that updates loses it.\n"
    )
