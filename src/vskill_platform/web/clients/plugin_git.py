"""The repositories that marketplace documents name: each skill as a plugin, to be cloned with git over HTTP.

Read only, stateless, and the oldest version of the protocol that git still speaks everywhere. A repository holds one
commit: the current version's verified bytes below `skills/`, and the plugin's manifest. Whatever a client has
already, it is sent everything: a skill is small. What is blocked or withdrawn answers 403 or 410.
"""

import asyncio
import gzip
import io
from collections.abc import Iterator
from typing import Literal

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.flat_names import name_skill
from vskill_platform.actions.skill_contents import read_files
from vskill_platform.actions.skill_names import find_installable, find_skill
from vskill_platform.actions.wire import Asked
from vskill_platform.domain.content import SkillFile
from vskill_platform.domain.errors import InvalidInput, NotFound
from vskill_platform.domain.skill import PublishedSkill, VersionRef
from vskill_platform.web.api.files import made_of
from vskill_platform.web.clients.artifacts import count_install
from vskill_platform.web.clients.git_objects import Repository, pack_of, repository_of
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.routing import get, post, read_body

PLACE = "/marketplace/{owner}/{repo}/{name}"
BRANCH = "refs/heads/main"
#: What a request to fetch may hold: names of commits, nothing else.
MOST_REQUEST = 1_000_000
FLUSH = b"0000"
#: The most that one packet of the side band carries.
_BAND = 65_515
_NO_STORE = {"cache-control": "no-cache"}


class ServiceQuery(Asked, frozen=True):
    """Git asks for what it can fetch; nothing can be pushed."""

    service: Literal["git-upload-pack"]


async def refs(request: Request) -> Response:
    _, repository = await _repository(request)
    able = (
        "shallow side-band-64k no-progress allow-tip-sha1-in-want "
        f"symref=HEAD:{BRANCH} object-format=sha1 agent=vskill-platform"
    )
    body = b"".join(
        (
            packet(b"# service=git-upload-pack\n"),
            FLUSH,
            packet(f"{repository.commit} HEAD\0{able}\n".encode()),
            packet(f"{repository.commit} {BRANCH}\n".encode()),
            FLUSH,
        )
    )
    return Response(body, 200, _NO_STORE, "application/x-git-upload-pack-advertisement")


async def fetch(request: Request) -> Response:
    lines = list(packets(_plain(request, await read_body(request, MOST_REQUEST))))
    skill, repository = await _repository(request)
    wanted = {line[5:45].decode("ascii", "replace") for line in lines if line.startswith(b"want ")}
    if not wanted or wanted != {repository.commit}:
        return _answer(packet(b"ERR another version was published; fetch again\n"))
    deepens = any(line.startswith(b"deepen") for line in lines)
    # One commit has no history to cut off, so there is nothing to say about depth but that all is said.
    shallow = FLUSH if deepens else b""
    if b"done" not in (line.strip() for line in lines):
        has_any = any(line.startswith(b"have ") for line in lines)
        return _answer(shallow + (packet(b"NAK\n") if has_any or not deepens else b""))
    pack = await asyncio.to_thread(pack_of, repository)
    await count_install(request, skill)
    banded = "side-band-64k" in lines[0].decode("ascii", "replace")
    return _answer(shallow + packet(b"NAK\n") + (b"".join(_split_into_bands(pack)) if banded else pack))


def _answer(body: bytes) -> Response:
    return Response(body, 200, _NO_STORE, "application/x-git-upload-pack-result")


# The repository.


async def _repository(request: Request) -> tuple[PublishedSkill, Repository]:
    given = request.path_params
    slug = given["name"].removesuffix(".git")
    if slug == given["name"]:
        raise NotFound("A plugin's repository ends in .git.", name=slug[:200])
    reader = principal_of(request)
    skill = await find_skill(services_of(request), reader, f"{given['owner']}/{given['repo']}/{slug}")
    ref = await find_installable(services_of(request), skill, None)
    files = await read_files(services_of(request), ref.digest)
    name = await name_skill(services_of(request), reader, skill, in_repo=True)

    def make(files: tuple[SkillFile, ...]) -> Repository:
        return repository_of(
            plugin_files(name, skill, ref, files),
            message=f"{skill.canonical} {ref.number}",
            at_ms=ref.published_at,
        )

    return skill, await made_of(files, make)


def plugin_files(
    name: str, skill: PublishedSkill, ref: VersionRef, files: tuple[SkillFile, ...]
) -> tuple[SkillFile, ...]:
    """The skill's folder, unchanged, in a plugin of that name."""
    manifest = {"name": name, "version": ref.number, "description": skill.description}
    moved = [SkillFile(f"skills/{name}/{file.path}", file.mode, file.data) for file in files]
    encoded = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    return (SkillFile(".claude-plugin/plugin.json", "100644", encoded + b"\n"), *moved)


# Packets.


def packet(data: bytes) -> bytes:
    return b"%04x" % (len(data) + 4) + data


def packets(data: bytes) -> Iterator[bytes]:
    """The lines of a request, without the marks between them."""
    at = 0
    while at < len(data):
        head = data[at : at + 4]
        try:
            size = int(head, 16)
        except ValueError:
            size = -1
        if len(head) < 4 or size < 0 or at + size > len(data):
            raise InvalidInput("The request does not come from git.", field="body", fix="use git to fetch")
        if size > 4:
            yield data[at + 4 : at + size]
        at += max(size, 4)


def _split_into_bands(pack: bytes) -> Iterator[bytes]:
    for begin in range(0, len(pack), _BAND):
        yield packet(b"\x01" + pack[begin : begin + _BAND])
    yield FLUSH


def _plain(request: Request, body: bytes) -> bytes:
    """Git compresses longer requests."""
    if request.headers.get("content-encoding", "") not in ("gzip", "x-gzip"):
        return body
    try:
        plain = gzip.GzipFile(fileobj=io.BytesIO(body)).read(MOST_REQUEST + 1)
    except (OSError, EOFError) as error:
        raise InvalidInput(f"The body is not gzip: {error}", field="body", fix="send it plain") from None
    if len(plain) > MOST_REQUEST:
        raise InvalidInput("The request is too long.", field="body", fix="clone anew")
    return plain


ENDPOINTS = (
    get(f"{PLACE}/info/refs", refs, query=ServiceQuery, media="*/*", documented=False, for_git=True),
    post(
        f"{PLACE}/git-upload-pack",
        fetch,
        no_scope="reads, and counts the clone as an anonymous one",
        reads_only=True,
        for_git=True,
        media="*/*",
        documented=False,
        most_body=MOST_REQUEST,
    ),
)
