"""Every promise of the blob store, on every engine; then what files alone can show: nothing half-written, and
clear errors where the disk fails.
"""

import asyncio
import errno
import hashlib
import os
import resource
from contextlib import contextmanager
from pathlib import Path

import pytest

from vskill_core.errors import BlobUnavailable, InvalidInput, Unsupported
from vskill_platform.ledger.blobs.contract import Blobs, check_address
from vskill_platform.ledger.blobs.files import FilesBlobs

pytestmark = pytest.mark.anyio

ADDRESS = "ab" + "cd" + "0" * 60
OTHER = "f" * 64


def address_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# Every engine.


@pytest.mark.parametrize("data", [b"", b"x", bytes(range(256)), b"\0" * 3_000_000])
async def test_what_was_put_comes_back_byte_for_byte(blobs: Blobs, data):
    address = address_of(data)
    assert await blobs.has(address) is False
    await blobs.put(address, data)
    assert await blobs.get(address) == data
    assert await blobs.has(address) is True


async def test_C7_what_is_missing_is_None_and_no_error(blobs: Blobs):
    assert await blobs.get(ADDRESS) is None
    assert await blobs.has(ADDRESS) is False
    assert await blobs.set_aside(ADDRESS, 0) is False
    assert await blobs.delete_aside(ADDRESS, 0) is False


async def test_the_address_is_the_callers_and_need_not_be_a_hash_of_the_bytes(blobs: Blobs):
    await blobs.put(ADDRESS, b"one")
    await blobs.put(OTHER, b"one")
    assert await blobs.get(ADDRESS) == await blobs.get(OTHER) == b"one"


async def test_putting_twice_is_harmless(blobs: Blobs):
    await blobs.put(ADDRESS, b"one")
    await blobs.put(ADDRESS, b"one")
    assert await blobs.get(ADDRESS) == b"one"


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("found", [b"who", b"whale", b"wholesome"])
async def test_what_is_there_and_differs_is_damage_and_is_mended(blobs: Blobs, found, replace):
    """Also at equal length: a length proves nothing."""
    await blobs.put(ADDRESS, found)
    await blobs.put(ADDRESS, b"whole", replace=replace)
    assert await blobs.get(ADDRESS) == b"whole"


async def test_a_reader_sees_the_old_bytes_or_the_new_ones_while_they_are_replaced(blobs: Blobs):
    old, new = b"o" * 300_000, b"n" * 300_000
    await blobs.put(ADDRESS, old)

    async def replace() -> None:
        for data in (new, old) * 10:
            await blobs.put(ADDRESS, data, replace=True)

    async def read() -> set[bytes | None]:
        return {await blobs.get(ADDRESS) for _ in range(40)}

    seen, *_ = await asyncio.gather(read(), replace())
    assert seen <= {old, new}


async def test_all_content_is_listed_by_its_address(blobs: Blobs):
    assert [piece async for piece in blobs.pieces()] == []
    wanted = {address_of(b"%d" % n) for n in range(300)}
    for address in wanted:
        await blobs.put(address, b"x")
    await blobs.put(ADDRESS, b"x")
    await blobs.set_aside(ADDRESS, 0)
    found = [piece async for piece in blobs.pieces()]
    assert sorted(one.address for one in found if not one.is_aside) == sorted(wanted)
    assert [one.address for one in found if one.is_aside] == [ADDRESS]
    assert all(0 <= one.untouched_ms < 3_600_000 for one in found)


async def test_an_engine_that_cannot_list_its_content_says_so(blobs: Blobs):
    with pytest.raises(Unsupported, match="listing content"):
        Blobs.pieces(blobs)


async def test_what_was_put_lately_is_not_set_aside(blobs: Blobs):
    await blobs.put(ADDRESS, b"one")
    assert await blobs.set_aside(ADDRESS, 3_600_000) is False
    assert [one.is_aside async for one in blobs.pieces()] == [False]


@pytest.mark.parametrize("bring_back", ["get", "has", "put"])
async def test_what_was_set_aside_is_brought_back_by_whoever_wants_it(blobs: Blobs, bring_back):
    await blobs.put(ADDRESS, b"one")
    assert await blobs.set_aside(ADDRESS, 0) is True
    wanted = {
        "get": lambda: blobs.get(ADDRESS),
        "has": lambda: blobs.has(ADDRESS),
        "put": lambda: blobs.put(ADDRESS, b"one"),
    }
    assert await wanted[bring_back]() in (b"one", True, None)
    assert await blobs.get(ADDRESS) == b"one"
    await blobs.delete_aside(ADDRESS, 0)
    assert await blobs.get(ADDRESS) == b"one"


async def test_only_what_was_aside_long_enough_is_deleted_and_it_can_be_put_again(blobs: Blobs):
    await blobs.put(ADDRESS, b"one")
    await blobs.put(OTHER, b"other")
    assert await blobs.set_aside(ADDRESS, 0) is True
    assert await blobs.delete_aside(ADDRESS, 3_600_000) is False
    assert await blobs.delete_aside(ADDRESS, 0) is True
    assert await blobs.get(ADDRESS) is None
    assert await blobs.delete_aside(OTHER, 0) is False
    assert await blobs.get(OTHER) == b"other"
    await blobs.put(ADDRESS, b"one")
    assert await blobs.get(ADDRESS) == b"one"


async def test_thirty_concurrent_puts_of_one_address_leave_it_whole(blobs: Blobs):
    data = os.urandom(200_000)
    address = address_of(data)
    reads = await asyncio.gather(*(put_and_get(blobs, address, data) for _ in range(30)))
    assert all(read == data for read in reads)


async def put_and_get(blobs: Blobs, address: str, data: bytes) -> bytes | None:
    await blobs.put(address, data)
    return await blobs.get(address)


BAD_ADDRESSES = [
    "",
    "ab",
    "0" * 63,
    "0" * 65,
    "A" * 64,
    "g" * 64,
    "../" + "0" * 61,
    "0" * 63 + "/",
    "0" * 63 + "\0",
    "0" * 63 + "\n",
    "\u0660" * 64,
    "sha256:" + "0" * 57,
]


@pytest.mark.parametrize("address", BAD_ADDRESSES)
async def test_what_is_no_address_is_refused_everywhere(blobs: Blobs, address):
    calls = (blobs.put(address, b"x"), blobs.get(address), blobs.has(address))
    for call in (*calls, blobs.set_aside(address, 0), blobs.delete_aside(address, 0)):
        with pytest.raises(InvalidInput) as caught:
            await call
        assert caught.value.field == "address"


def test_an_address_passes_as_it_is():
    assert check_address(ADDRESS) == ADDRESS


# Files.


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "data" / "blobs"


@pytest.fixture
async def files(root: Path) -> FilesBlobs:
    return await FilesBlobs.open(root)


def all_files(root: Path) -> list[Path]:
    return sorted(path.relative_to(root) for path in root.rglob("*") if path.is_file())


async def test_a_file_lies_two_folders_deep_and_nothing_unfinished_is_left(files: FilesBlobs, root: Path):
    await files.put(ADDRESS, b"one")
    assert all_files(root) == [Path("ab", "cd", ADDRESS)]


async def test_what_was_put_survives_its_process(files: FilesBlobs, root: Path):
    await files.put(ADDRESS, b"one")
    await files.close()
    again = await FilesBlobs.open(root)
    assert await again.get(ADDRESS) == b"one"


async def test_putting_again_touches_the_file_and_writes_nothing(files: FilesBlobs, root: Path):
    await files.put(ADDRESS, b"one")
    path = root / "ab" / "cd" / ADDRESS
    os.utime(path, (1, 1))
    before = path.stat()
    await files.put(ADDRESS, b"one")
    after = path.stat()
    assert after.st_mtime > 1_000_000
    assert after.st_ino == before.st_ino


async def test_replacing_writes_although_the_bytes_are_there(files: FilesBlobs, root: Path):
    """What was read may have come from memory, while the disk holds something else."""
    await files.put(ADDRESS, b"one")
    path = root / "ab" / "cd" / ADDRESS
    before = path.stat()
    await files.put(ADDRESS, b"one", replace=True)
    assert path.stat().st_ino != before.st_ino
    assert all_files(root) == [Path("ab", "cd", ADDRESS)]


async def test_a_replacement_that_the_disk_refuses_leaves_what_was_there(files: FilesBlobs, root: Path):
    await files.put(ADDRESS, b"old")
    with no_file_longer_than(100), pytest.raises(BlobUnavailable):
        await files.put(ADDRESS, b"x" * 500_000, replace=True)
    assert await files.get(ADDRESS) == b"old"
    assert all_files(root) == [Path("ab", "cd", ADDRESS)]


async def test_how_long_nobody_put_it_is_told_by_the_file_systems_clock(files: FilesBlobs, root: Path):
    await files.put(ADDRESS, b"one")
    path = root / "ab" / "cd" / ADDRESS
    os.utime(path, (path.stat().st_mtime - 3600,) * 2)
    (piece,) = [piece async for piece in files.pieces()]
    assert 3_600_000 <= piece.untouched_ms < 3_700_000
    assert await files.set_aside(ADDRESS, 3_600_000) is True
    (piece,) = [piece async for piece in files.pieces()]
    assert piece.is_aside and piece.untouched_ms < 3_600_000


@contextmanager
def no_file_longer_than(size: int):
    """The system refuses longer writes, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_write_that_the_disk_refuses_leaves_nothing_behind(files: FilesBlobs, root: Path):
    with no_file_longer_than(100_000), pytest.raises(BlobUnavailable) as caught:
        await files.put(ADDRESS, b"x" * 500_000)
    assert os.strerror(errno.EFBIG) in str(caught.value)
    assert str(root) in str(caught.value)
    assert all_files(root) == []
    assert await files.get(ADDRESS) is None
    await files.put(ADDRESS, b"x" * 500_000)
    assert await files.has(ADDRESS) is True


async def test_a_place_that_is_taken_by_a_folder_is_an_error_and_leaves_nothing(
    files: FilesBlobs, root: Path
):
    (root / "ab" / "cd" / ADDRESS).mkdir(parents=True)
    with pytest.raises(BlobUnavailable):
        await files.put(ADDRESS, b"x")
    with pytest.raises(BlobUnavailable):
        await files.get(ADDRESS)
    assert all_files(root) == []


async def test_C7_a_folder_that_is_gone_is_an_error_and_not_missing(files: FilesBlobs, root: Path):
    """As when its volume is not mounted: nothing is written beside it, and no content is called missing."""
    await files.put(ADDRESS, b"one")
    root.rename(root.with_name("elsewhere"))
    calls = (files.get(ADDRESS), files.has(ADDRESS), files.put(ADDRESS, b"one"))
    for call in (*calls, files.set_aside(ADDRESS, 0), files.delete_aside(ADDRESS, 0)):
        with pytest.raises(BlobUnavailable):
            await call
    with pytest.raises(BlobUnavailable):
        assert [piece async for piece in files.pieces()]
    assert not root.exists()
    root.with_name("elsewhere").rename(root)
    assert await files.get(ADDRESS) == b"one"


async def test_what_others_put_into_the_folder_is_not_listed(files: FilesBlobs, root: Path):
    await files.put(ADDRESS, b"one")
    (root / "ab" / "cd" / "notes.txt").write_text("not ours")
    (root / "lost+found").mkdir()
    assert [piece.address async for piece in files.pieces()] == [ADDRESS]


async def test_a_folder_that_cannot_be_written_is_refused_when_it_is_opened():
    """Also for root, whom no permission stops: nobody writes into this one."""
    root = Path("/proc/self")
    with pytest.raises(BlobUnavailable, match=str(root)):
        await FilesBlobs.open(root)


async def test_a_file_where_the_folder_should_be_is_refused_when_it_is_opened(tmp_path: Path):
    path = tmp_path / "blobs"
    path.write_text("not a folder")
    with pytest.raises(BlobUnavailable, match=r"blobs.*(Not a directory|File exists)"):
        await FilesBlobs.open(path)
    assert path.read_text() == "not a folder"


async def test_what_a_dead_process_left_unfinished_is_removed_at_opening_and_a_fresh_one_is_not(
    files: FilesBlobs, root: Path
):
    old, fresh = root / "unfinished" / "old", root / "unfinished" / "fresh"
    old.write_bytes(b"half")
    fresh.write_bytes(b"somebody is writing this")
    os.utime(old, (1, 1))
    await FilesBlobs.open(root)
    assert all_files(root) == [fresh.relative_to(root)]


async def test_a_store_opens_while_others_write_into_it(root: Path):
    """What one process has listed as unfinished, another has given its place before it is looked at."""

    async def open_and_write(number: int) -> None:
        for step in range(40):
            blobs = await FilesBlobs.open(root)
            data = f"{number} {step}".encode()
            await blobs.put(address_of(data), data)

    await asyncio.gather(*(open_and_write(number) for number in range(8)))
    assert len(all_files(root)) == 8 * 40


async def test_file_work_does_not_block_the_event_loop(files: FilesBlobs):
    """The guard of the whole suite would fail this test if it did; here the loop goes on meanwhile."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    await files.put(ADDRESS, b"x" * 1_000_000)
    ticking.cancel()
    assert ticks > 1
