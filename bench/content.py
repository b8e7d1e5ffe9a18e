"""Content in S3 beside files, the server on this machine: skills a second from a repository's address to PUBLISHED, and
archives a second over HTTP."""

import os

import msgspec

from bench import path
from bench.catalogue import CONTENT
from bench.door import crowd
from bench.results import Figure, Report, at_least
from bench.webs import CLIENTS, fill, serving
from bench.workshop import Workshop
from tests.support import s3
from vskill_core.content import digest_of_files
from vskill_platform.bootstrap import env_for
from vskill_platform.domain.packed_content import pack
from vskill_platform.settings import Settings

FILES, BUCKET = "files", "S3"
#: How much of the rate with files must be left.
GOALS = {"submit to PUBLISHED, repositories of 10 skills": 0.5, "archives of 4 KB over HTTP": 0.4}


def run(workshop: Workshop) -> Report:
    server = s3.Server()
    os.environ.update(server.variables)
    try:
        return _compare(workshop, {FILES: "", BUCKET: f"s3://{s3.BUCKET}/bench"})
    finally:
        server.remove()
        for name in server.variables:
            os.environ.pop(name, None)


def _compare(workshop: Workshop, places: dict[str, str]) -> Report:
    published, archives = GOALS
    rates: dict[tuple[str, str], list[float]] = {}
    shelf = fill(workshop)
    workshop.run(_keep_content(places[BUCKET]))
    repositories = max(2, workshop.scale.submissions // path.SHARES[10])
    for _ in range(workshop.scale.crowd_rounds):
        for name, blobs in places.items():
            sample = path.measure(workshop, repositories, 10, blobs)
            rates.setdefault((published, name), []).append(sample.rate)
            with serving(msgspec.structs.replace(shelf, blobs=blobs or shelf.blobs)) as (port, _):
                workshop.run(crowd(port, 2, shelf.paths["archive"], 0.2))
                found = workshop.run(crowd(port, CLIENTS, shelf.paths["archive"], workshop.scale.crowd_s))
            rates.setdefault((archives, name), []).append(found.rate)
    figures = {key: Figure.of(f"{key[0]}, content in {key[1]}", "/s", taken) for key, taken in rates.items()}
    goals = tuple(
        at_least(f"{what}: S3 ÷ files", figures[what, BUCKET].median / figures[what, FILES].median, least)
        for what, least in GOALS.items()
    )
    return Report("content", "Content in S3 beside files", tuple(figures.values()), goals)


async def _keep_content(blobs: str) -> None:
    async with env_for(Settings(store="memory:", blobs=blobs)) as env:
        await env.blobs.put(digest_of_files(CONTENT), pack(CONTENT))
