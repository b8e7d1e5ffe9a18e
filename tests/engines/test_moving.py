"""Moving an installation to another engine, and backing it up: nothing is lost on the way, an interrupted copy goes on,
what is there already is never overwritten, and every copy is compared before anyone relies on it."""

import io
import json
import tarfile
from itertools import product
from pathlib import Path

import msgspec
import pytest

from tests.support.damage import BREAKS
from tests.support.envs import active_env, make_submission, submit_skill
from vskill_core.errors import Conflict, InvalidSettings, NotFound, SchemaUnknown, StoreCorrupt
from vskill_platform.bootstrap import env_for, open_snapshot
from vskill_platform.domain.operation.damage import DamageKind
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.states import State
from vskill_platform.installation import migrate as moving
from vskill_platform.installation.backup import FORMAT, MANIFEST, RECORDS, back_up, restore, verify
from vskill_platform.installation.migrate import migrate
from vskill_platform.installation.snapshot import MARKER, count_totals
from vskill_platform.ledger.kv.contract import SNAPSHOT_PAGE
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.queue.health import queue_health
from vskill_platform.queue.recovery import recover_stuck_submissions
from vskill_platform.settings import Settings, keys_folder
from vskill_platform.submission_store import count_submissions
from vskill_platform.worker_context import Env, run_with_worker_env

pytestmark = pytest.mark.anyio

ENGINES = ("sqlite", "postgresql")
PAIRS = list(product(ENGINES, ENGINES))
MANY = SNAPSHOT_PAGE * 2 + 7


def settings_of(location: str, folder: Path) -> Settings:
    return Settings(data_dir=str(folder), store=location)


async def fill(settings: Settings, *, many: int = MANY) -> None:
    """Submissions in several states, odd keys and values, a cache, a dead letter, and content."""
    async with env_for(settings) as env:
        with active_env(env):
            now = env.kv.now()
            states = (State.PUBLISHED, State.REJECTED, State.NEEDS_REVIEW)
            puts = [
                Put(record.key, msgspec.json.encode(record))
                for n in range(many)
                for record in [make_submission(f"s{n}", state=states[n % 3], at=now)]
            ]
            for start in range(0, many, 500):
                await env.kv.commit(puts[start : start + 500])
            await env.kv.put("odd:ключ \N{SNOWMAN}", '"ünïcode \\u0000 \N{SNOWMAN}"'.encode())
            await env.kv.put("sub:broken", b"{not json")
            await env.kv.put("cache:soon", b"1", ttl_ms=3_600_000)
            await env.kv.put("cache:gone", b"1", ttl_ms=1)
            await submit_skill("waiting")
            await env.broker.send(b"\0 bad", "bad")
            for batch in await env.broker.receive(10, 0):
                for message in batch.messages:
                    await (message.dead_letter("why") if message.key == "bad" else message.retry())


async def totals(location: str):
    async with open_snapshot(location) as snapshot:
        return await count_totals(snapshot)


@pytest.mark.parametrize(("source", "target"), PAIRS)
async def test_everything_arrives_whatever_the_engines(new_store, tmp_path, source, target):
    old, new = await new_store(source), await new_store(target)
    await fill(settings_of(old, tmp_path))
    done = await migrate(old, new)
    assert done.equal
    assert await totals(old) == await totals(new)
    assert done.target.records >= MANY + 3
    assert done.target.dead_letters == 1
    async with env_for(settings_of(new, tmp_path)) as env:
        await check_usable(env)


async def check_usable(env: Env) -> None:
    """The copy works: counts, odd values, caches that have not ended, and recovery that sends what was queued."""
    with active_env(env):
        assert (await count_submissions(audiences=EVERYTHING)).total >= MANY + 1
        odd = await env.kv.get("odd:ключ \N{SNOWMAN}")
        assert odd is not None
        assert odd.value == '"ünïcode \\u0000 \N{SNOWMAN}"'.encode()
        assert await env.kv.get("cache:soon") is not None
        assert await env.kv.get("cache:gone") is None
        assert await env.kv.get(MARKER) is None
        (letter,) = (await env.broker.dead_letters()).items
        assert (letter.body, letter.key, letter.reason) == (b"\0 bad", "bad", "why")
        (violation,) = (await queue_health()).violations
        assert "broken" in violation.key
        await run_with_worker_env(env, recover_stuck_submissions)
        assert (await env.broker.depth()).ready == 1


async def test_a_live_source_is_said_to_differ_and_the_next_run_brings_only_what_changed(
    new_store, tmp_path, monkeypatch
):
    old, new = await new_store("sqlite"), await new_store("postgresql")
    settings = settings_of(old, tmp_path)
    await fill(settings)
    copy_letters = moving._copy_letters

    async def and_meanwhile(*arguments):
        await copy_letters(*arguments)
        async with env_for(settings) as env:
            await env.kv.put("odd:late", b'"came while copying"')
            await env.kv.delete("sub:broken")

    monkeypatch.setattr(moving, "_copy_letters", and_meanwhile)
    first = await migrate(old, new)
    assert not first.equal
    monkeypatch.setattr(moving, "_copy_letters", copy_letters)
    second = await migrate(old, new)
    assert second.equal
    assert (second.written, second.removed) == (1, 1)
    assert second.target.dead_letters == 1


async def test_an_interrupted_run_goes_on_behind_its_last_page(new_store, tmp_path):
    old, new = await new_store("sqlite"), await new_store("postgresql")
    await fill(settings_of(old, tmp_path))

    def interrupt(_stage: str, compared: int, _total: int | None) -> None:
        if compared >= SNAPSHOT_PAGE * 2:
            raise Interrupted

    with pytest.raises(Interrupted):
        await migrate(old, new, interrupt)
    done = await migrate(old, new)
    assert done.equal
    assert done.compared < MANY, "the pages that were done are not looked at again"


class Interrupted(Exception):
    """Stands for Ctrl-C, which would end the tests."""


async def test_a_store_that_somebody_uses_is_never_written_over(new_store, tmp_path):
    old, used = await new_store("sqlite"), await new_store("sqlite")
    await fill(settings_of(old, tmp_path), many=3)
    await fill(settings_of(used, tmp_path), many=1)
    before = await totals(used)
    with pytest.raises(Conflict, match="give an empty store"):
        await migrate(old, used)
    assert await totals(used) == before


async def test_a_finished_copy_is_a_store_like_any_other(new_store, tmp_path):
    old, new = await new_store("sqlite"), await new_store("sqlite")
    await fill(settings_of(old, tmp_path), many=3)
    assert (await migrate(old, new)).equal
    with pytest.raises(Conflict, match="give an empty store"):
        await migrate(old, new)


async def test_a_copy_of_another_store_is_not_taken_up(new_store, tmp_path):
    old, new = await new_store("sqlite"), await new_store("sqlite")
    await fill(settings_of(old, tmp_path), many=1)
    async with env_for(settings_of(new, tmp_path)) as env:
        await env.kv.put(MARKER, b'{"source": "sqlite:elsewhere.db", "after": ""}')
    with pytest.raises(Conflict, match=r"sqlite:elsewhere\.db"):
        await migrate(old, new)


@pytest.mark.parametrize(
    ("source", "error"),
    [("sqlite:nowhere.db", NotFound), ("memory:", InvalidSettings), ("vskill.db", InvalidSettings)],
)
async def test_what_cannot_be_copied_is_said(new_store, tmp_path, source, error):
    with pytest.raises(error):
        await migrate(source, await new_store("sqlite"))


# Backups.


@pytest.mark.parametrize(("source", "target"), PAIRS)
async def test_a_backup_taken_beside_a_running_process_restores_to_the_same(
    new_store, tmp_path, source, target
):
    old = settings_of(await new_store(source), tmp_path / "old")
    new = settings_of(await new_store(target), tmp_path / "new")
    await fill(old)
    file = tmp_path / "backup.tar"
    async with env_for(old) as env:
        manifest = await back_up(old, file, with_keys=True)
        await env.kv.put("odd:later", b"1")
    assert await verify(file) == manifest
    assert await restore(new, file) == manifest
    assert await totals(new.store) == manifest.totals
    assert manifest.blobs >= 1
    assert manifest.keys == 2
    assert keys(old) == keys(new)
    assert file.stat().st_mode & 0o077 == 0
    assert [path.name for path in tmp_path.glob("vskill-verify-*")] == []
    async with env_for(new) as env:
        await check_usable(env)


async def test_whoever_watches_is_told_how_far_it_is(new_store, tmp_path):
    old = settings_of(await new_store("sqlite"), tmp_path / "old")
    await fill(old, many=3)
    told: dict[str, tuple[int, int | None]] = {}

    def watch(stage: str, done: int, total: int | None) -> None:
        told[stage] = done, total

    manifest = await back_up(old, tmp_path / "b.tar", progress=watch)
    records, blobs = manifest.totals.records, manifest.blobs
    assert told == {"records read": (records, None), "content read": (blobs, blobs)}
    told.clear()
    await restore(settings_of(await new_store("sqlite"), tmp_path / "new"), tmp_path / "b.tar", watch)
    (cache,) = {told.pop("records written")[0] - records}
    assert cache == 1, "caches are written and not counted"
    assert told == {"content written": (blobs, blobs), "records compared": (records, None)}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"release": "9.9.9"}, "needs release 9.9.9 or a newer one"),
        ({"format": FORMAT + 1, "release": "0.3.1"}, "needs release 0.3.1 or a newer one"),
        ({"format": 1, "release": "0.1.0"}, "before release 0.3.0, which no release reads"),
    ],
)
async def test_a_backup_that_this_release_does_not_read_is_refused_and_nothing_is_written(
    new_store, tmp_path, change, says
):
    old = settings_of(await new_store("sqlite"), tmp_path / "old")
    await fill(old, many=1)
    manifest = await back_up(old, tmp_path / "b.tar", with_keys=True)
    newer = msgspec.json.encode(msgspec.structs.replace(manifest, **change))
    with tarfile.open(tmp_path / "b.tar", "a") as archive:
        member = tarfile.TarInfo(MANIFEST)
        member.size = len(newer)
        archive.addfile(member, io.BytesIO(newer))
    new = settings_of(await new_store("sqlite"), tmp_path / "new")
    with pytest.raises(SchemaUnknown, match=says):
        await restore(new, tmp_path / "b.tar")
    assert not Path(new.store.removeprefix("sqlite:")).exists() and not (tmp_path / "new").exists()


def keys(settings: Settings) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in keys_folder(settings).iterdir()}


async def test_keys_are_left_out_unless_they_are_asked_for(new_store, tmp_path):
    settings = settings_of(await new_store("sqlite"), tmp_path / "data")
    await fill(settings, many=1)
    await back_up(settings, tmp_path / "b.tar")
    with tarfile.open(tmp_path / "b.tar") as archive:
        assert not [name for name in archive.getnames() if "key" in name]


async def test_a_restore_never_writes_over_a_store_that_is_in_use(new_store, tmp_path):
    settings = settings_of(await new_store("sqlite"), tmp_path / "data")
    await fill(settings, many=1)
    await back_up(settings, tmp_path / "b.tar")
    with pytest.raises(Conflict, match="empty store"):
        await restore(settings, tmp_path / "b.tar")


async def test_a_backup_is_never_written_over(new_store, tmp_path):
    settings = settings_of(await new_store("sqlite"), tmp_path / "data")
    await fill(settings, many=1)
    (tmp_path / "b.tar").write_bytes(b"precious")
    with pytest.raises(Conflict, match="already exists"):
        await back_up(settings, tmp_path / "b.tar")
    assert (tmp_path / "b.tar").read_bytes() == b"precious"


async def test_a_backup_that_was_not_finished_or_is_damaged_is_refused(new_store, tmp_path):
    settings = settings_of(await new_store("sqlite"), tmp_path / "data")
    await fill(settings, many=3)
    whole = tmp_path / "b.tar"
    await back_up(settings, whole)
    fresh = settings_of(await new_store("sqlite"), tmp_path / "fresh")
    cut = tmp_path / "cut.tar"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    with pytest.raises(StoreCorrupt, match="not a complete backup"):
        await restore(fresh, cut)
    changed = tmp_path / "changed.tar"
    data = whole.read_bytes().replace(b"\\\\u0000", b"\\\\u0001", 1)
    assert data != whole.read_bytes()
    changed.write_bytes(data)
    with pytest.raises(StoreCorrupt, match="differs from the backup"):
        await restore(fresh, changed)


@pytest.mark.parametrize("kind", BREAKS)
async def test_damaged_content_is_named_by_backup_verify_and_restore(new_store, tmp_path, kind):
    """The rest is backed up and restored all the same."""
    settings = settings_of(await new_store("sqlite"), tmp_path / "data")
    async with env_for(settings) as env:
        with active_env(env):
            lost, kept = await submit_skill("lost"), await submit_skill("kept")
            assert lost.submission and kept.submission and lost.submission.upload
            await BREAKS[kind](env.blobs, lost.submission.upload)
    manifest = await back_up(settings, tmp_path / "b.tar")
    (damaged,) = manifest.damaged
    assert (damaged.digest, damaged.kind) == (lost.submission.upload, kind)
    assert damaged.named_by == (lost.submission.key,)
    assert manifest.blobs == 1
    missing = (msgspec.structs.replace(damaged, kind=DamageKind.MISSING),)
    assert (await verify(tmp_path / "b.tar")).damaged == missing
    fresh = settings_of(await new_store("sqlite"), tmp_path / "fresh")
    assert (await restore(fresh, tmp_path / "b.tar")).damaged == missing
    async with env_for(fresh) as env:
        assert await env.blobs.has(str(kept.submission.upload))
        assert await env.kv.get(lost.submission.key) is not None


async def test_content_that_was_damaged_in_the_file_is_named_and_not_restored(new_store, tmp_path):
    settings = settings_of(await new_store("sqlite"), tmp_path / "data")
    async with env_for(settings) as env:
        with active_env(env):
            done = await submit_skill("demo", "a unique line")
    await back_up(settings, tmp_path / "b.tar")
    whole = (tmp_path / "b.tar").read_bytes()
    (tmp_path / "b.tar").write_bytes(whole.replace(b"a unique line", b"a wicked line"))
    fresh = settings_of(await new_store("sqlite"), tmp_path / "fresh")
    (damaged,) = (await restore(fresh, tmp_path / "b.tar")).damaged
    assert done.submission is not None
    assert (damaged.digest, damaged.kind) == (done.submission.upload, DamageKind.CHANGED)
    async with env_for(fresh) as env:
        assert not await env.blobs.has(damaged.digest)


async def test_the_file_is_an_ordinary_archive_with_its_manifest_last(new_store, tmp_path):
    settings = settings_of(await new_store("sqlite"), tmp_path / "data")
    await fill(settings, many=3)
    manifest = await back_up(settings, tmp_path / "b.tar")
    with tarfile.open(tmp_path / "b.tar") as archive:
        assert archive.getnames()[0] == RECORDS
        assert archive.getnames()[-1] == MANIFEST
        lines = archive.extractfile(RECORDS)
        assert lines is not None
        kept = [json.loads(line) for line in lines]
    durable = [row for row in kept if row[2] is None]
    assert len(durable) == manifest.totals.records


async def test_a_file_that_cannot_be_written_leaves_nothing_behind(new_store, tmp_path):
    settings = settings_of(await new_store("sqlite"), tmp_path / "data")
    await fill(settings, many=1)
    with pytest.raises(Exception, match="cannot be written"):
        await back_up(settings, tmp_path / "no such folder" / "b.tar")
