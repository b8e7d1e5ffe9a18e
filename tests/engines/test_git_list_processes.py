"""Git marketplaces by real web processes on one PostgreSQL, each with a disk of its own: one is killed while it makes the
list, and whoever is asked then serves one and the same commit."""

import asyncio
from pathlib import Path

import asyncpg
import httpx2
import pytest

from tests.engines.roles import Installation, Web, installation
from tests.processes.workers import until
from tests.support.envs import run_until_quiet, skill_files
from tests.support.git_packs import ClonedTexts, clone_texts
from tests.support.patience import PATIENCE_S
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.states import State
from vskill_platform.intake.submit import submit_upload
from vskill_platform.submission_store import get_submission

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

ALL = "/marketplace.git"
#: A commit names the address of the registry, which is one for all of its processes.
VARIABLES = {"VSKILL_PUBLIC_URL": "https://skills.example.org", "VSKILL_GIT_LIST_INTERVAL_MS": "1"}


async def clone(web: Web) -> ClonedTexts:
    async with httpx2.AsyncClient(base_url=web.address, timeout=PATIENCE_S) as client:
        return await clone_texts(client, ALL)


async def publish(roles: Installation, name: str) -> None:
    submitted = (await submit_upload(skill_files(name), namespace="tests", slug=name)).submission
    assert submitted is not None
    sent = submitted.id

    async def is_published() -> bool:
        await run_until_quiet(roles.env, recover=True)
        return (await get_submission(sent, audiences=EVERYTHING)).state is State.PUBLISHED

    await until(is_published, PATIENCE_S, f"{name} was not published")


async def test_one_that_is_killed_while_it_makes_the_list_and_another_disk_give_one_commit(tmp_path: Path):
    """No record can be written while the first makes the list: its files are on its disk, and nobody knows of them."""
    async with installation(tmp_path, **VARIABLES) as roles:
        await publish(roles, "first")
        disks = [tmp_path / name for name in ("one", "two")]
        one, two = [await roles.web(VSKILL_DATA_DIR=str(disk)) for disk in disks]

        async def has_made() -> bool:
            return any(place.is_file() for place in (disks[0] / "blobs").rglob("*"))

        held = await asyncpg.connect(roles.env.settings.store)
        try:
            await held.execute("BEGIN; LOCK TABLE records IN EXCLUSIVE MODE")
            asking = asyncio.create_task(clone(one))
            await until(has_made, PATIENCE_S, "the list was not made")
            await one.process.kill()
            with pytest.raises(httpx2.HTTPError):
                await asking
        finally:
            await held.close()
        # PostgreSQL may still finish the statement of a client that has died: then a record names files that only the
        # dead one has.
        first = await clone(two)
        assert list(first.plugins) == ["first"]
        again = await roles.web(VSKILL_DATA_DIR=str(disks[0]))
        assert await clone(again) == first
        await publish(roles, "second")
        second = await clone(again)
        assert list(second.plugins) == ["first", "second"] and await clone(two) == second
