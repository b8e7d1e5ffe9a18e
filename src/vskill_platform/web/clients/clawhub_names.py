"""What skills are called in ClawHub's protocol, which knows an owner's handle and a slug where we have
`owner/repo/slug`.

The handle is the first part. The slug is the skill's short name; a skill whose short name ends in a hash is called
`owner--repo--slug`, which is always understood and means one skill only, because no slug of ours has two hyphens in a
row. With a handle, a slug is good if that owner has a skill of it. An account's own uploads go by its plain name as a
handle too.
"""

from collections.abc import Iterable
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response

from vskill_core.errors import Ambiguous, InvalidInput, NotFound, NotVerifiedYet
from vskill_core.naming import is_plain_name
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.skills.skill_names import find_skill, leads_to, list_holders, name_skills
from vskill_platform.domain.skills.names import hashed_name
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.web.exchange import json_response, principal_of, public_address

#: Between the parts of a name that is written flat.
JOIN = "--"
#: Skills that a client is given to choose from.
MOST_CHOICES = 20
#: How the handles of accounts that upload begin.
UPLOADS = "upload~"


def handle_of(skill: PublishedSkill) -> str:
    return skill.canonical.partition("/")[0]


async def flat_slugs(request: Request, skills: Iterable[PublishedSkill]) -> dict[str, str]:
    """How this protocol calls skills, by their canonical names: by the name in lists, unless there is none yet or it
    tells nobody whose skill it is. Then the slug serves where it is no plain name and leads to the skill."""
    reader, skills = principal_of(request), tuple(skills)
    named = await name_skills(reader, skills)
    slugs = {skill.canonical: name for name, skill in named.items() if name != hashed_name(skill.canonical)}
    for skill in skills:
        if skill.canonical not in slugs:
            own = not is_plain_name(skill.slug) and await leads_to(reader, skill.slug, skill)
            slugs[skill.canonical] = skill.slug if own else skill.canonical.replace("/", JOIN)
    return slugs


async def _by_parts(reader: Principal, slug: str) -> PublishedSkill | None:
    """`owner--repo--slug`: the last part has no `--`, and where the others are cut is tried."""
    rest, found, last = slug.lower().rpartition(JOIN)
    if not found:
        return None
    for at in range(1, len(rest)):
        if rest.startswith(JOIN, at) and rest[:at] and rest[at + 2 :]:
            try:
                return await find_skill(reader, f"{rest[:at]}/{rest[at + 2 :]}/{last}")
            except NotVerifiedYet:
                raise
            except NotFound:
                continue
    return None


async def _of_owner(reader: Principal, slug: str, handle: str) -> PublishedSkill:
    """An account's own uploads go by its plain name too."""
    handle = handle.removeprefix("@")
    if reader.account in (handle, handle.removeprefix(UPLOADS)):
        own = f"{UPLOADS}{handle.removeprefix(UPLOADS)}"
        with suppress(NotFound):
            return await find_skill(reader, f"{own}/skills/{slug.lower()}")
    return await find_skill(reader, f"{handle}/{slug}")


async def asked_skill(request: Request, slug: str, handle: str) -> PublishedSkill | Response:
    """The one skill that a slug means, or the answer that this client shows as a list to choose from."""
    reader = principal_of(request)
    try:
        joined = await _by_parts(reader, slug)
        if joined is not None:
            return joined
        try:
            return await (_of_owner(reader, slug, handle.lower()) if handle else find_skill(reader, slug))
        except InvalidInput:
            raise NotFound from None
    except Ambiguous as error:
        holders = (await list_holders(reader, slug))[:MOST_CHOICES]
        matches = [
            {
                "ownerHandle": canonical.partition("/")[0],
                "slug": slug,
                "ref": canonical.replace("/", JOIN),
                "url": f"{public_address(request)}/skills/{canonical}",
            }
            for canonical in holders
        ]
        body = {"code": "AMBIGUOUS_SKILL_SLUG", "message": error.message, "error": error.message}
        return json_response({**body, "matches": matches}, 409)
    except NotVerifiedYet:
        raise
    except NotFound:
        raise NotFound(f"Skill not found: {slug[:200]}", skill=slug[:200]) from None
