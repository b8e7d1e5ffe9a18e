"""Lists of submissions and places in the line: everybody reads them, one's own are for whoever is signed in, and the
API and both command lines give the same."""

import asyncio

import pytest
from click.testing import CliRunner

from tests.support.envs import make_submission, open_test_env, put_record, submit_skill
from tests.support.people import make_account, token_of
from tests.support.streams import serving
from vskill_core.errors import InvalidInput, NotSignedIn
from vskill_platform.actions.principal import ANYBODY, Principal, resolve
from vskill_platform.actions.submissions.submission_lists import (
    LIST,
    MOST_IDS,
    OWN_AT_ONCE,
    POSITIONS,
    FindPositions,
    ListSubmissions,
    own_submissions,
)
from vskill_platform.cli import cli
from vskill_platform.domain.submissions.states import State, StateCategory
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.submissions.submission_lists import Order

pytestmark = pytest.mark.anyio

ANN = Principal("ann", Role.AUTHOR)
LISTING = ("submission", "list", "--mine", "--state", "PUBLISHED")


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("memory", tmp_path) as opened:
        yield opened


async def fill(env) -> None:
    for name, state in (("one", State.PUBLISHED), ("two", State.REJECTED)):
        await put_record(env, make_submission(name, state=state, at=env.kv.now(), submitter="ann"))
    await put_record(env, make_submission("three", state=State.PUBLISHED, at=env.kv.now(), submitter="bob"))


async def test_a_list_is_narrowed_by_state_category_words_and_submitter(env):
    await fill(env)

    async def names(**wanted) -> set[str]:
        found = await LIST(env, ANN, ListSubmissions(**wanted))
        assert not found.has_more and found.after is None
        return {one.skill_name for one in found.submissions}

    assert await names() == {"one", "two", "three"}
    assert await names(state=State.PUBLISHED) == {"one", "three"}
    assert await names(category=StateCategory.FAILED) == {"two"}
    assert await names(q="thr") == {"three"}
    assert await names(mine=True) == {"one", "two"}
    assert await names(mine=True, state=State.REJECTED) == {"two"}


async def test_a_list_says_what_is_wrong_with_the_question(env):
    with pytest.raises(NotSignedIn):
        await LIST(env, ANYBODY, ListSubmissions(mine=True))
    with pytest.raises(InvalidInput, match="not both"):
        await LIST(env, ANYBODY, ListSubmissions(state=State.REJECTED, category=StateCategory.FAILED))
    with pytest.raises(InvalidInput, match="can only be sorted by"):
        await LIST(env, ANYBODY, ListSubmissions(state=State.REJECTED, sort=Order.CREATED))
    with pytest.raises(InvalidInput, match="More than 100 ids"):
        await POSITIONS(env, ANYBODY, FindPositions(ids=",".join("x" for _ in range(MOST_IDS + 1))))


async def test_pages_of_a_list_follow_each_other(env):
    await fill(env)
    first = await LIST(env, ANYBODY, ListSubmissions(limit=2))
    assert first.has_more and first.after is not None
    second = await LIST(env, ANYBODY, ListSubmissions(limit=2, after=first.after))
    assert {one.id for one in (*first.submissions, *second.submissions)} == {
        make_submission(name).id for name in ("one", "two", "three")
    }
    assert second.after is None


async def test_places_in_the_line_are_given_for_what_waits(env):
    await fill(env)
    ids = []
    for name in ("first", "second"):
        done = await submit_skill(name)
        assert done.submission is not None
        ids.append(done.submission.id)
    published = make_submission("one").id
    found = await POSITIONS(env, ANYBODY, FindPositions(ids=",".join([*ids, published, "sub_none"])))
    places = {one.id: one.position.place if one.position else None for one in found.positions}
    assert set(places) == {*ids, published} and places[published] is None
    assert {places[one] for one in ids} == {1, 2} and found.waiting == 2


async def test_one_s_own_are_the_latest_first_page_by_page(env):
    for number in range(OWN_AT_ONCE + 1):
        await put_record(env, make_submission(f"s{number}", at=1_000 + number, submitter="ann"))
    await put_record(env, make_submission("other", at=9_000, submitter="bob"))
    ann = await resolve(ANN)
    page = await own_submissions(ann, None)
    assert [one.skill_name for one in page.items] == [f"s{n}" for n in range(OWN_AT_ONCE, 0, -1)]
    rest = await own_submissions(ann, page.after)
    assert ([one.skill_name for one in rest.items], rest.after) == (["s0"], None)


async def test_both_command_lines_list_what_the_api_lists(tmp_path, monkeypatch):
    async with open_test_env("sqlite", tmp_path, rate_limits="off") as env:
        await fill(env)
        await make_account(env, "ann", Role.AUTHOR)
        (card,) = (await LIST(env, ANN, ListSubmissions(mine=True, state=State.PUBLISHED))).submissions
        monkeypatch.setenv("VSKILL_DATA_DIR", str(tmp_path))
        monkeypatch.setenv("VSKILL_STORE", f"sqlite:{tmp_path / 'vskill.db'}")
        monkeypatch.setenv("VSKILL_PLATFORM_TOKEN", await token_of(env, "ann", "read"))

        async def run(*words: str) -> str:
            # In a thread, because a command starts an event loop of its own.
            done = await asyncio.to_thread(CliRunner().invoke, cli, [*words, *LISTING])
            assert done.exit_code == 0, done.output
            return done.stdout

        async with serving(env) as address:
            for where in (("--registry", address), ("--as", "ann")):
                shown = await run(*where)
                assert shown.startswith("1 submission") and card.id in shown
