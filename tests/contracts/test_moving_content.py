"""Content is copied between any two engines, taken up after an interruption, and compared."""

import itertools

import pytest

from tests.contracts.conftest import BLOB_ENGINES
from vskill_core.errors import BlobUnavailable, InvalidInput, InvalidSettings, NotFound
from vskill_platform.cli.operation.migrate import _show_content
from vskill_platform.installation.content import MovedContent, copy_content, move_content
from vskill_platform.ledger.blobs.contract import Blobs
from vskill_platform.ledger.blobs.memory import MemoryBlobs

pytestmark = pytest.mark.anyio

PIECES = {f"{number:064x}": b"%d" % number * 1_000 for number in range(7)}


def tell(*_: object) -> None:
    """Nobody watches."""


async def fill(blobs: Blobs) -> None:
    for address, data in PIECES.items():
        await blobs.put(address, data)


@pytest.mark.parametrize(("source", "target"), list(itertools.product(BLOB_ENGINES, repeat=2)))
async def test_all_content_is_there_afterwards_and_equal(source, target, tmp_path):
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
    here = await BLOB_ENGINES[source](tmp_path / "here")
    there = await BLOB_ENGINES[target](tmp_path / "there")
    await fill(here)
    # What was set aside is named again by whoever reads a record that names it.
    await here.set_aside(f"{3:064x}", 0)
    told: list[tuple[str, int, int | None]] = []
    done = await copy_content(here, there, lambda *step: told.append(step), verify=True)
    assert done == MovedContent(7, 7, 7)
    assert told[6] == ("content copied", 7, 7) and told[-1] == ("content verified", 7, 7)
    assert {address: await there.get(address) for address in PIECES} == PIECES
    assert await copy_content(here, there, tell, verify=False) == MovedContent(7, 0, 0)
    for blobs in (here, there):
        await blobs.close()


class Breaking(MemoryBlobs):
    """Fails after some writes, once."""

    def __init__(self) -> None:
        super().__init__()
        self.left = 4

    async def put(self, address: str, data: bytes, *, replace: bool = False) -> None:
        self.left -= 1
        if self.left == 0:
            raise BlobUnavailable("the target is away because a test says so")
        await super().put(address, data, replace=replace)


async def test_an_interrupted_run_is_taken_up():
    here, there = MemoryBlobs(), Breaking()
    await fill(here)
    with pytest.raises(BlobUnavailable):
        await copy_content(here, there, tell, verify=False)
    assert await copy_content(here, there, tell, verify=True) == MovedContent(7, 4, 7)


class Stubborn(MemoryBlobs):
    """Keeps one piece cut, whatever is written."""

    async def put(self, address: str, data: bytes, *, replace: bool = False) -> None:
        await super().put(address, data[:1] if address == f"{5:064x}" else data, replace=replace)


async def test_what_differs_is_written_again_or_named():
    here, there = MemoryBlobs(), MemoryBlobs()
    await fill(here)
    await there.put(f"{2:064x}", b"of somebody else")
    assert await copy_content(here, there, tell, verify=True) == MovedContent(7, 6, 7)
    assert await there.get(f"{2:064x}") == PIECES[f"{2:064x}"]
    done = await copy_content(here, Stubborn(), tell, verify=True)
    assert done.differ == (f"{5:064x}",)


class Forgetful(MemoryBlobs):
    """Lists a piece that it does not have."""

    async def get(self, address: str) -> bytes | None:
        return None if address == f"{5:064x}" else await super().get(address)


async def test_what_the_source_lists_and_does_not_have_is_named():
    here, there, gone = Forgetful(), MemoryBlobs(), (f"{5:064x}",)
    await fill(here)
    assert await copy_content(here, there, tell, verify=False) == MovedContent(7, 6, 0, missing=gone)
    assert await copy_content(here, there, tell, verify=True) == MovedContent(7, 0, 6, missing=gone)
    assert await copy_content(here, MemoryBlobs(), tell, verify=True) == MovedContent(7, 6, 6, missing=gone)
    await there.put(f"{5:064x}", b"of an earlier run")
    assert await copy_content(here, there, tell, verify=True) == MovedContent(7, 0, 6, missing=gone)


def test_the_command_names_it_and_fails(capsys):
    with pytest.raises(SystemExit) as ended:
        _show_content(MovedContent(7, 6, 6, missing=(f"{5:064x}",)), as_json=False)
    assert ended.value.code == 1
    said = capsys.readouterr().out
    assert "7 pieces of content, 6 copied, 6 compared" in said
    assert f"{5:064x} was not copied or compared" in said


async def test_places_that_cannot_be_meant_are_refused(tmp_path):
    with pytest.raises(InvalidSettings, match="one at a time"):
        await move_content(f"files:{tmp_path}", "sqlite:new.db")
    with pytest.raises(InvalidSettings, match="one at a time"):
        await move_content("memory:", f"files:{tmp_path}")
    with pytest.raises(InvalidInput, match="same place"):
        await move_content(f"files:{tmp_path}", f"files:{tmp_path}")
    with pytest.raises(NotFound, match="no folder"):
        await move_content(f"files:{tmp_path / 'absent'}", f"files:{tmp_path}")
    with pytest.raises(InvalidSettings, match="no place in a bucket"):
        await move_content(f"files:{tmp_path}", "s3://Not A Bucket")
