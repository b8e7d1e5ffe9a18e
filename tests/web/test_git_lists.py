"""Git marketplaces in one process and in several: the same commit everywhere, whatever breaks while one is made."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx2
import msgspec
import pytest

from tests.support.damage import BREAKS
from tests.support.envs import active_env, run_until_quiet
from tests.support.faults import HookedKV
from tests.support.git_packs import clone_texts, fetch_pack
from tests.support.namespaces import manage
from tests.support.site import Site, open_site
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import Visibility, namespace_audiences
from vskill_platform.domain.skills.git_list import GitList
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.ledger.blobs.memory import MemoryBlobs
from vskill_platform.ledger.kv.entries import Operation, Put
from vskill_platform.records import decode
from vskill_platform.store.stored_content import list_damage
from vskill_platform.upkeep.scrub import ScrubProgress, scrub
from vskill_platform.web.app import create_app
from vskill_platform.worker_context import Env

pytestmark = pytest.mark.anyio

ALL = "/marketplace.git"
KEY = keys.git_list("marketplace", "readers")


@pytest.fixture
async def site(tmp_path):
    async with open_site("sqlite", tmp_path, git_list_interval_ms=1) as opened:
        await opened.publish("first")
        yield opened


@asynccontextmanager
async def another_process(env: Env, **engines: object) -> AsyncIterator[httpx2.AsyncClient]:
    """Another web process on the same records, with some engines of its own."""
    other = msgspec.structs.replace(env, **engines)
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(create_app(other)), base_url="http://platform.test"
    ) as client:
        yield client


async def stored(site: Site) -> GitList:
    entry = await site.env.kv.get(KEY)
    assert entry is not None
    return decode(entry, GitList)


async def test_a_list_is_made_once_and_found_by_its_record(site):
    first = await clone_texts(site.client, ALL)
    record = await stored(site)
    assert list(first.plugins) == ["first"] and await site.env.blobs.has(record.served.digest)
    await clone_texts(site.client, ALL)
    assert (await stored(site)).served == record.served
    await site.publish("second")
    second = await clone_texts(site.client, ALL)
    assert second.commit != first.commit and list(second.plugins) == ["first", "second"]


async def test_two_processes_without_a_shared_disk_serve_the_same_commit(site):
    first = await clone_texts(site.client, ALL)
    async with another_process(site.env, blobs=MemoryBlobs()) as client:
        assert await clone_texts(client, ALL) == first
        await site.publish("second")
        second = await clone_texts(client, ALL)
    assert await clone_texts(site.client, ALL) == second != first
    assert await list_damage() == ()


async def test_one_that_is_killed_while_it_makes_the_list_changes_nothing(site):
    """It dies before the record is written; what it left in the content store is the same list."""
    hooked = HookedKV(site.env.kv)

    async def die(operations: Sequence[Operation]) -> None:
        if any(isinstance(one, Put) and one.key == KEY for one in operations):
            raise SystemExit

    hooked.before_commit = die
    async with another_process(site.env, kv=hooked) as client:
        with pytest.raises(SystemExit):
            await clone_texts(client, ALL)
    assert await site.env.kv.get(KEY) is None
    first = await clone_texts(site.client, ALL)
    async with another_process(site.env, blobs=MemoryBlobs()) as client:
        assert await clone_texts(client, ALL) == first


async def test_many_who_ask_at_once_are_given_one_commit_that_is_made_once(tmp_path):
    async with open_site("sqlite", tmp_path) as site:
        await site.publish("first")
        hooked = HookedKV(site.env.kv)
        async with another_process(site.env, kv=hooked) as client:
            found = await asyncio.gather(*(clone_texts(client, ALL) for _ in range(8)))
    assert {one.commit for one in found} == {found[0].commit}
    puts = [one for written in hooked.commits for one in written if isinstance(one, Put) and one.key == KEY]
    assert len(puts) == 1


async def test_a_client_between_its_two_requests_is_given_what_it_was_shown(site):
    first = await clone_texts(site.client, ALL)
    await site.publish("second")
    assert (await clone_texts(site.client, ALL)).commit != first.commit
    assert b"PACK" in await fetch_pack(site.client, ALL, first.commit)
    await site.publish("third")
    await clone_texts(site.client, ALL)
    assert b"ERR another version was published" in await fetch_pack(site.client, ALL, first.commit)


@pytest.mark.parametrize("kind", BREAKS)
async def test_a_damaged_list_is_made_anew(site, kind):
    first = await clone_texts(site.client, ALL)
    await BREAKS[kind](site.env.blobs, (await stored(site)).served.digest)
    async with another_process(site.env) as client:
        assert await clone_texts(client, ALL) == first


async def test_the_scrub_finds_a_damaged_list_and_the_repair_has_it_made_anew(site):
    first = await clone_texts(site.client, ALL)
    await BREAKS["changed"](site.env.blobs, (await stored(site)).served.digest)
    with active_env(site.env):
        await scrub(ScrubProgress())
        assert [one.named_by for one in await list_damage()] == [(KEY,)]
        await run_until_quiet(site.env)
        assert await list_damage() == ()
    async with another_process(site.env) as client:
        assert await clone_texts(client, ALL) == first


async def test_whoever_may_not_read_a_namespace_any_more_is_not_given_its_old_list(tmp_path):
    """However long a commit would be served otherwise, also to a client between its two requests."""
    async with open_site("sqlite", tmp_path, git_list_interval_ms=86_400_000) as site:
        await manage(site.env, "upload~mia", Visibility.PUBLIC)
        await site.publish("open")
        await site.publish("hers", namespace="mia", by=SubmittedBy("mia", namespace_audiences("upload~mia")))
        first = await clone_texts(site.client, ALL)
        assert set(first.plugins) == {"open", "hers"}
        await manage(site.env, "upload~mia", Visibility.TEAM)
        assert b"PACK" not in await fetch_pack(site.client, ALL, first.commit)
        assert set((await clone_texts(site.client, ALL)).plugins) == {"open"}
        assert (await clone_texts(site.client, "/upload~mia.git")).status == 401


async def test_the_registry_s_own_address_is_in_the_list_and_no_other(site):
    """Where the operator set none, it is the one that the client came to; nothing of that is stored."""
    for host in ("one.test", "two.test:8080"):
        headers = {"host": host}
        found = await clone_texts(site.client, ALL, headers=headers)
        address = f"http://{host}/marketplace/upload~tests/skills/first.git"
        assert found.plugins["first"]["source"]["url"] == address
    data = await site.env.blobs.get((await stored(site)).served.digest)
    assert data is not None and b".test" not in data
