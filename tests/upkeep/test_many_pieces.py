"""Thirty of three hundred pieces are damaged while they are in use, a third of them at equal length: all are found, listed
and mended from their repository, nobody gets a wrong byte, and the backup says what is missing."""

import asyncio
import json
import random
from collections import Counter

import pytest
from click.testing import CliRunner

from tests.support.damage import BREAKS
from tests.support.envs import open_test_env, run_until_quiet
from tests.support.git_server import git_server, skill_md
from tests.support.manual_clock import ManualClock
from vskill_core.content import SkillFile
from vskill_core.errors import ContentDamaged
from vskill_core.identity import normalise
from vskill_platform.cli import cli
from vskill_platform.intake.submit import Request, submit
from vskill_platform.queue.health import queue_health
from vskill_platform.queue.jobs import JOBS
from vskill_platform.queue.schedule import run_job
from vskill_platform.sources.contract import Repositories
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.skills.skills import iter_skills
from vskill_platform.store.stored_content import list_damage, read_content
from vskill_platform.upkeep.scrub import EVERY_MS, PASS_EVERY_MS

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

URL = "https://github.com/ann/many"
PIECES, DAMAGED = 300, 30


class Readers:
    """They read everything again and again, and remember what they got."""

    def __init__(self, expected: dict[str, tuple[SkillFile, ...]]) -> None:
        self._expected = expected
        self.got: Counter[str] = Counter()
        self.stopped = False

    async def read(self) -> None:
        while not self.stopped:
            for digest, files in self._expected.items():
                try:
                    found = await read_content(digest)
                except ContentDamaged:
                    self.got["refused"] += 1
                else:
                    self.got["right" if found == files else "wrong"] += 1
                await asyncio.sleep(0)


async def publish_many(env, server) -> dict[str, tuple[SkillFile, ...]]:
    """Every digest with its files."""
    files = {f"skills/s{n}/SKILL.md": skill_md(f"s{n}", f"Number {n}.") for n in range(PIECES)}
    server.repo("ann/many", files)
    assert isinstance(env.sources, Repositories)
    for place in (await env.sources.survey(normalise(URL))).places:
        await submit(Request(place.identity, place=place))
    await run_until_quiet(env)
    digests = [ref.digest async for skill in iter_skills() for ref in skill.versions]
    return {digest: await read_content(digest) for digest in digests}


async def backed_up(tmp_path) -> tuple[int, list[dict[str, object]]]:
    """What the command ends with, and what it says is damaged."""
    variables = {"VSKILL_DATA_DIR": str(tmp_path), "VSKILL_LOG_LEVEL": "error"}
    command = ["backup", str(tmp_path / "backup.tar"), "--verify", "--json"]
    done = await asyncio.to_thread(CliRunner().invoke, cli, command, env=variables)
    return done.exit_code, json.loads(done.stdout)["damaged"]


async def test_thirty_of_three_hundred_are_found_listed_and_mended_without_a_wrong_byte(tmp_path):
    scrub, clock = next(job for job in JOBS if job.name == "scrub"), ManualClock()
    with git_server(tmp_path / "served") as server:
        rewrites = (server.rewrite(),)
        async with open_test_env("sqlite", tmp_path, clock=clock, source_rewrites=rewrites) as env:
            whole = await publish_many(env, server)
            assert len(whole) == PIECES
            readers = Readers(whole)
            reading = asyncio.create_task(readers.read())
            chosen = random.Random(18).sample(sorted(whole), DAMAGED)
            for number, digest in enumerate(chosen):
                await BREAKS[list(BREAKS)[number % len(BREAKS)]](env.blobs, digest)
            code, told = await backed_up(tmp_path)
            assert code == 1
            assert {one["digest"] for one in told} == set(chosen)
            assert all(one["namedBy"] for one in told)
            clock.advance(PASS_EVERY_MS)
            await run_job(scrub, forced=True)
            assert {one.digest for one in await list_damage()} == set(chosen)
            assert Counter(one.kind.value for one in await list_damage()) == dict.fromkeys(
                BREAKS, DAMAGED // 3
            )
            health = await queue_health()
            assert not health.healthy and health.damaged == DAMAGED
            while await list_damage():
                await run_until_quiet(env)
                clock.advance(EVERY_MS)
            readers.stopped = True
            await reading
            assert {digest: await read_content(digest) for digest in whole} == whole
            assert readers.got["wrong"] == 0
            assert readers.got["refused"] > 0 and readers.got["right"] > PIECES
            mended = [one for one in (await list_audit(limit=100)).items if one.action == "content mended"]
            assert {one.target for one in mended} == set(chosen)
            assert (await queue_health()).damaged == 0
