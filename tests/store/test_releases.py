"""The note of which release uses a store: what `doctor` and the admin's page make of it is tested with them."""

import msgspec
import pytest

from tests.support.envs import open_test_env
from vskill_core.release import __version__, release_numbers
from vskill_platform.domain.keys import CONTROL_RELEASE
from vskill_platform.store.operation.releases import UsedRelease, note_release
from vskill_platform.web.documents import ReleaseNotes, notes_since

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("stored", "release", "before"),
    [
        (None, __version__, ""),
        (UsedRelease("0.2.9", 1, "0.2.8"), __version__, "0.2.9"),
        (UsedRelease(__version__, 1, "0.2.9"), __version__, "0.2.9"),
        (UsedRelease("99.0.0", 1, "0.3.0"), "99.0.0", "0.3.0"),
    ],
    ids=["a new store", "an upgrade", "the same again", "beside a newer one"],
)
async def test_a_start_notes_its_release_unless_it_is_an_older_one(tmp_path, stored, release, before):
    async with open_test_env("memory", tmp_path) as env:
        if stored is not None:
            await env.kv.put(CONTROL_RELEASE, msgspec.json.encode(stored))
        await note_release(env.kv)
        entry = await env.kv.get(CONTROL_RELEASE)
        assert entry is not None
        noted = msgspec.json.decode(entry.value, type=UsedRelease)
        assert (noted.release, noted.before) == (release, before)
        assert noted.previous == before


def test_releases_are_compared_by_their_numbers():
    assert release_numbers("0.10.0") > release_numbers("0.9.9")
    assert release_numbers("0.3.0.dev0") == release_numbers("0.3.0")


def test_every_release_of_the_changelog_can_be_compared_and_the_newest_is_this_one():
    """Its heading begins with the number, and a comma ends it."""
    newest = notes_since("0.0.0")[0]
    assert release_numbers(newest.release) == release_numbers(__version__)
    assert notes_since(newest.release) == []


def test_what_is_to_do_is_one_line():
    text = "Fine.\n\n### When you upgrade\n\n- Set A,\n  then B.\n- Restart.\n\n### For authors\n\n- More."
    assert ReleaseNotes("1.0.0", text).to_do == "Set A, then B. Restart."
    assert ReleaseNotes("1.0.0", "Fine.\n").to_do == ""
