"""One skill as the existing client reads it. It is asked for most, so the answer is kept by its record's version."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.principal import audiences_of
from vskill_platform.actions.skills.installs import with_current_installs
from vskill_platform.actions.skills.skill_contents import read_skill_text
from vskill_platform.actions.skills.skill_names import find_skill, find_skill_version
from vskill_platform.actions.skills.skill_views import SkillAnswer, detail
from vskill_platform.actions.wire import encode
from vskill_platform.web.api.names import asked_name, both
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.kept import Again, Answer, form_key, kept_of, last_change


async def detail_view(request: Request) -> Response:
    name = asked_name(request)
    if name.count("/") != 2:
        name = (await find_skill(principal_of(request), name)).canonical
    return Again(await _detail(request, name), request)


async def _detail(request: Request, name: str) -> Answer:
    """Kept while nothing in the store has changed, or else neither the record, the installs nor the blocklist has."""
    kept, services, reader = kept_of(request), services_of(request), principal_of(request)
    key = form_key(request, None, "skill", name)
    seen = await last_change()
    known = kept.answer(key, seen)
    if known is not None:
        return known
    skill, version, blocklist = await find_skill_version(services, reader, name)
    skill = await with_current_installs(services, skill)
    mark = (version, blocklist.version, skill.trust.installs)
    known = kept.same(key, mark, seen)
    if known is not None:
        return known
    gone = skill.current_digest is None or bool(blocklist.hits_skill(skill))
    content = "" if gone else await read_skill_text(services, skill.current_digest or "")
    shown = detail(skill, blocklist, content, audiences_of(reader))
    return kept.keep(key, encode(SkillAnswer(shown)), seen, mark)


ENDPOINTS = both(
    "",
    detail_view,
    answer=SkillAnswer,
    problems=(404,),
    summary="Read one skill",
    about="A name that nobody holds and several skills declare is a 404 with the header `X-Legacy-Ambiguous: true`.",
)
