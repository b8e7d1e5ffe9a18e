"""Which skill an address means. A canonical name is three segments; any other name is one, encoded where it has a
`/` in it. Both forms lead to the same views."""

from typing import Any

from starlette.requests import Request

from vskill_platform.domain import keys
from vskill_platform.domain.errors import Ambiguous, Blocked, InvalidInput, NotFound, Withdrawn
from vskill_platform.domain.identity import normalise
from vskill_platform.domain.skill import PublishedSkill, VersionRef, VersionStatus
from vskill_platform.records import decode
from vskill_platform.store.skills import get_skill, read_skill
from vskill_platform.web.kept import Blocklist, kept_of
from vskill_platform.web.routing import Endpoint, View, get
from vskill_platform.worker_context import require_env

SKILLS = "/api/v1/skills"
CANONICAL = f"{SKILLS}/{{owner}}/{{repo}}/{{slug}}"
ANY_NAME = f"{SKILLS}/{{name}}"
#: Of the skills of one flat name, how many are looked at.
MOST_SAME = 50


def both(suffix: str, view: View, **declared: Any) -> tuple[Endpoint, Endpoint]:
    """The same reading for both forms of a name."""
    return get(CANONICAL + suffix, view, **declared), get(ANY_NAME + suffix, view, **declared)


def asked_name(request: Request) -> str:
    """The name in the address, of either form."""
    parts = request.path_params
    if "name" in parts:
        return str(parts["name"])
    return f"{parts['owner']}/{parts['repo']}/{parts['slug']}"


async def asked_skill(request: Request) -> PublishedSkill:
    """The skill that the address means."""
    return await find_skill(asked_name(request))


async def find_skill(name: str, repo_url: str | None = None) -> PublishedSkill:
    """By canonical name, by `owner/slug`, or by flat name, which `repo_url` may tell from others of that name."""
    if name.count("/") == 2:
        return await _by_canonical(name)
    owner, _, flat = name.rpartition("/")
    found = await _named(flat)
    if owner:
        found = [one for one in found if one.canonical.startswith(f"{owner.lower()}/")]
    if repo_url and len(found) > 1:
        place = normalise(repo_url)
        found = [one for one in found if one.identity.repo_key == place.repo_key]
    if len(found) > 1:
        names = ", ".join(one.canonical for one in found[:10])
        raise Ambiguous(f"{name} may be {names}; give the full name.", name=name)
    if not found:
        raise NotFound(f"There is no skill {name[:200]}.", skill=name[:200])
    return found[0]


async def _by_canonical(name: str) -> PublishedSkill:
    """Hosts that compare without case have lower-case names here, whatever the client writes."""
    found, _ = await read_skill(name)
    if found is None and name != name.lower():
        found, _ = await read_skill(name.lower())
    return found or await get_skill(name)


async def _named(flat: str) -> list[PublishedSkill]:
    """Every skill of a flat name."""
    if not flat:
        return []
    kv = require_env("kv").kv
    page = await kv.list(keys.aliases_of(flat.lower()), limit=MOST_SAME)
    if not page.items:
        return []
    settled = await kv.get_many(keys.skill(keys.parse(key).parts[1]) for key in page.items)
    for error in settled.failed.values():
        raise error
    return [decode(entry, PublishedSkill) for _, entry in sorted(settled.found.items())]


# Versions that may be handed out.


async def installable(request: Request, skill: PublishedSkill, number: str | None) -> VersionRef:
    """The version asked for, or the current one. Blocked, Withdrawn or NotFound says why there is none."""
    blocklist = await kept_of(request).blocklist()
    ref = chosen_version(skill, number)
    refuse_blocked(skill, ref, blocklist)
    return ref


def version_of(skill: PublishedSkill, number: str, field: str = "version") -> VersionRef:
    """A version that a parameter names; InvalidInput where there is none."""
    ref = next((ref for ref in skill.versions if ref.number == number), None)
    if ref is None:
        known = ", ".join(one.number for one in skill.versions[-10:])
        message = f"{skill.canonical} has no version {number[:80]!r}."
        raise InvalidInput(message, field=field, fix=f"give one of {known}")
    return ref


def refuse_blocked(skill: PublishedSkill, ref: VersionRef, blocklist: Blocklist) -> None:
    """Blocked and withdrawn content is not handed out, and the answer says why."""
    hits = blocklist.hits(skill.identity, (skill.name,), ref.digest)
    what = f"{skill.canonical} {ref.number}"
    if hits:
        raise Blocked(f"{what} is blocked: {hits[0].reason}", skill=skill.canonical, reason=hits[0].reason)
    if ref.status is VersionStatus.TAKEN_DOWN:
        raise Blocked(f"{what} was taken down: {ref.reason}", skill=skill.canonical, reason=ref.reason)
    if ref.status is VersionStatus.YANKED:
        raise Withdrawn(f"{what} was withdrawn: {ref.reason}", skill=skill.canonical, reason=ref.reason)


def chosen_version(skill: PublishedSkill, number: str | None) -> VersionRef:
    """The version asked for, or the current one, blocked or not; NotFound where there is none."""
    if number is not None:
        ref = next((ref for ref in skill.versions if ref.number == number), None)
    else:
        # Without a live one the latest says why there is none.
        current = next((ref for ref in skill.versions if ref.number == skill.current_version), None)
        ref = current or (skill.versions[-1] if skill.versions else None)
    if ref is None:
        raise NotFound(f"{skill.canonical} has no version {(number or '')[:80]!r}.", skill=skill.canonical)
    return ref
