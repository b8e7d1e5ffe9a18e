"""What clients download: a version's bytes as one file, its digest, and the count of installs.

Archives are the same bytes every time (`archives`), so the digest that an index names is that of what is served
later, whichever process makes it. Nothing is kept about who downloads: a download raises the day's counter of its
skill, unless its address asks for too many.
"""

from starlette.requests import Request

from vskill_platform.actions.action import Allowance
from vskill_platform.actions.installs import count_download
from vskill_platform.actions.skill_contents import read_files
from vskill_platform.domain import archives
from vskill_platform.domain.archives import Artifact, zip_archive
from vskill_platform.domain.content import SkillFile
from vskill_platform.domain.errors import RateLimited
from vskill_platform.domain.skill import PublishedSkill
from vskill_platform.keeping import Kept
from vskill_platform.web.api.files import made_of
from vskill_platform.web.limits import take

#: Bytes of digests that a process keeps.
_MOST_DIGESTS = 4_000_000


async def artifact_of(request: Request, digest: str) -> Artifact:
    """Of a content that an earlier release published: made once in each process. What is published now has it in its
    record."""
    kept = _artifact_cache(request)
    found = kept.get(digest)
    if found is None:
        found = await made_of(await read_files(digest), archives.artifact_of)
        kept.put(digest, found, 200)
    return found


async def zip_files(files: tuple[SkillFile, ...]) -> bytes:
    return await made_of(files, zip_archive)


async def count_install(request: Request, skill: PublishedSkill) -> None:
    """One more install, where the client has not asked for too many in this hour; the download goes on either way."""
    if request.method != "GET":
        return
    try:
        await take(request, Allowance.INSTALLS)
    except RateLimited:
        return
    finally:
        request.scope.pop("rate_limit", None)
    await count_download(skill)


def _artifact_cache(request: Request) -> Kept[Artifact]:
    state = request.app.state
    if not hasattr(state, "artifacts"):
        state.artifacts = Kept(_MOST_DIGESTS)
    found: Kept[Artifact] = state.artifacts
    return found
