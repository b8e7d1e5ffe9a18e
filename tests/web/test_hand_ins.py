"""A hand-in: one address for what was submitted together, true whenever it is loaded, for those who may read it."""

import io
import zipfile

import msgspec
import pytest

from tests.support.browsing import browsing
from tests.support.envs import active_env, make_submission, open_test_env, put_record, run_until_quiet
from tests.support.faults import HookedKV, UnreadableKV
from tests.support.html import Page
from tests.support.manual_clock import ManualClock
from tests.support.site import open_example_site
from tests.support.system_reads import get_submission
from vskill_core.identity import upload_identity
from vskill_platform.actions.people.tokens import CREATE_OWN_TOKEN, CreateOwnToken
from vskill_platform.actions.principal import Principal
from vskill_platform.domain import keys
from vskill_platform.domain.people.token import TokenScope
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import EntryPoint
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.submissions.submission_lists import (
    KEPT_MS,
    HandedIn,
    HandIn,
    keep_hand_in,
    read_hand_in,
)
from vskill_platform.worker_context import Env

pytestmark = pytest.mark.anyio

ROUGH = "https://github.com/vskill-rough/experiments"
NOW = 1_800_000_000_000


@pytest.fixture
async def site(tmp_path):
    async with open_example_site(tmp_path) as opened:
        yield opened


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("sqlite", tmp_path, clock=ManualClock(NOW), rate_limits="off") as opened:
        yield opened


async def handed_in(env: Env, submitter: str | None = None, *names: str, **fields) -> HandIn:
    """Waiting submissions of these names, and one place that was refused."""
    records = [make_submission(name, at=NOW, submitter=submitter, **fields) for name in names]
    for record in records:
        await put_record(env, record)
    refused = HandedIn("refused", repo_url="https://github.com/acme/none", reason="No SKILL.md; add one.")
    skills = (*(HandedIn("created", one.id, one.repo_url, one.skill_path) for one in records), refused)
    return await keep_hand_in(skills, source=EntryPoint.WEB, submitter=submitter, anonymous=submitter is None)


async def test_several_skills_get_one_address_that_tells_how_each_stands(site):
    found = await site.post("/submit/find", {"repo": ROUGH}, seen="/submit")
    paths = [one["value"] for one in Page(found.text).all("input") if one.get("name") == "path"]
    sent = {"repo": ROUGH, "path": [*paths, "no/such"]}
    response = await site.post("/submit/send", sent, seen="/submit")
    assert response.status_code == 303, response.text
    address = response.headers["location"]
    assert address.startswith("/hand-ins/")
    begun = await site.page(address)
    assert f"Checking {len(paths) + 1} skills" in begun.text
    assert "accepted" not in begun.text
    await run_until_quiet(site.env)
    ended = await site.page(address)
    links = {link for link in ended.links if link.startswith("/submissions/")}
    states = [(await get_submission(link.rpartition("/")[2])).state for link in links]
    assert len(links) == len(paths)
    assert f"{states.count(State.PUBLISHED)} of {len(paths) + 1} published" in ended.text
    assert "Refused" in ended.text and "no/such" in ended.text


async def test_the_api_and_the_command_line_name_the_same_page(env: Env):
    made = await handed_in(env, None, "one", "two")
    async with browsing(env) as client:
        answer = (await client.get(f"/api/v1/hand-ins/{made.id}")).json()
        page = (await client.get(f"/hand-ins/{made.id}")).text
    assert [one["outcome"] for one in answer["skills"]] == ["created", "created", "refused"]
    assert answer["ended"] is False
    for one in answer["skills"][:2]:
        assert f"/submissions/{one['submission']['id']}" in page


async def test_what_is_wrong_and_what_to_do_stands_beside_each_that_was_refused(env: Env):
    made = await handed_in(env, None, "one")
    async with browsing(env) as client:
        page = Page((await client.get(f"/hand-ins/{made.id}")).text)
    assert "No SKILL.md; add one." in page.text
    assert "/submit?repo=https%3A//github.com/acme/none" in page.links


async def test_what_was_refused_is_for_its_submitter_and_reviewers(env: Env):
    made = await handed_in(env, "ann", "one")
    async with (
        browsing(env) as stranger,
        browsing(env, "ann") as own,
        browsing(env, "eve", Role.REVIEWER) as reviewer,
    ):
        told = {
            name: (await client.get(f"/api/v1/hand-ins/{made.id}")).json()["skills"]
            for name, client in (("stranger", stranger), ("own", own), ("reviewer", reviewer))
        }
    assert [len(told[name]) for name in ("stranger", "own", "reviewer")] == [1, 2, 2]


async def test_a_token_for_one_namespace_does_not_read_what_its_account_was_refused_elsewhere(env: Env):
    made = await handed_in(env, "ann", "one")
    async with browsing(env, "ann"), browsing(env) as client:
        asked = CreateOwnToken(name="ci", scopes=(TokenScope.READ,), namespace="upload~ann")
        made_token = await CREATE_OWN_TOKEN(env, Principal("ann", Role.AUTHOR), asked)
        headers = {"authorization": f"Bearer {made_token.token}"}
        answer = (await client.get(f"/api/v1/hand-ins/{made.id}", headers=headers)).json()
    assert [one["outcome"] for one in answer["skills"]] == ["created"]


async def test_skills_that_one_may_not_read_are_missing_and_a_hand_in_of_only_those_is_not_there(env: Env):
    """What is hidden is answered as what does not exist."""
    hidden = await handed_in(env, "ann", "secret", audience="ns:acme")
    mixed = msgspec.structs.replace(hidden, id="mixed", skills=hidden.skills[:1])
    shown = make_submission("open", at=NOW)
    await put_record(env, shown)
    both = msgspec.structs.replace(mixed, skills=(*mixed.skills, HandedIn("created", shown.id)))
    await env.kv.put(keys.hand_in("mixed"), msgspec.json.encode(both))
    async with browsing(env) as client:
        answer = await client.get("/api/v1/hand-ins/mixed")
        assert "secret" not in answer.text
        assert len(answer.json()["skills"]) == 1
        there = await client.get(f"/api/v1/hand-ins/{hidden.id}")
        absent = await client.get(f"/api/v1/hand-ins/{'0' * len(hidden.id)}")
        page = await client.get(f"/hand-ins/{hidden.id}")
        stream = await client.get(f"/hand-ins/{hidden.id}/live")
    assert there.status_code == absent.status_code == page.status_code == stream.status_code == 404
    assert there.json()["detail"] == absent.json()["detail"]
    assert "secret" not in page.text


@pytest.mark.parametrize("value", [b"no record", b'{"id": 7, "audience": "public"}'], ids=["bytes", "fields"])
@pytest.mark.parametrize("others", [(), ("two", "three")], ids=["alone", "of three"])
async def test_a_record_that_is_no_submission_is_not_left_out_of_the_count(env: Env, value: bytes, others):
    made = await handed_in(env, None, "one", *others)
    await env.kv.put(keys.sub(str(made.skills[0].submission_id)), value)
    assert await statuses(env, made) == [503, 503]


async def test_what_the_store_fails_to_read_is_not_answered_as_absent(env: Env):
    made = await handed_in(env, None, "one", "two")
    first = keys.sub(str(made.skills[0].submission_id))
    away = HookedKV(env.kv)
    away.failing.add("get_many")
    for kv in (UnreadableKV(env.kv, first), away):
        assert await statuses(msgspec.structs.replace(env, kv=kv), made) == [503, 503]


async def test_a_broken_record_for_others_hides_nothing_from_a_reader(env: Env):
    """Whoever may not read it learns nothing of its state, broken or whole."""
    made = await handed_in(env, None, "one", "two")
    broken = b'{"id": 7, "audience": "ns:acme"}'
    await env.kv.put(keys.sub(str(made.skills[0].submission_id)), broken)
    async with browsing(env) as client:
        answer = (await client.get(f"/api/v1/hand-ins/{made.id}")).json()
    assert [one["outcome"] for one in answer["skills"]] == ["created", "refused"]


async def statuses(env: Env, made: HandIn) -> list[int]:
    """How the API and the page answer."""
    async with browsing(env) as client:
        paths = (f"/api/v1/hand-ins/{made.id}", f"/hand-ins/{made.id}")
        return [(await client.get(path)).status_code for path in paths]


async def test_it_is_gone_after_90_days_and_its_submissions_stay(env: Env):
    made = await handed_in(env, None, "one")
    assert isinstance(env.clock, ManualClock)
    env.clock.advance(KEPT_MS - 1)
    with active_env(env):
        assert await read_hand_in(made.id) == made
        env.clock.advance(2)
        assert await read_hand_in(made.id) is None
        assert (await get_submission(str(made.skills[0].submission_id))).state is State.RECEIVED


async def test_a_blocked_place_without_a_submission_says_so_on_a_page_of_its_own(site):
    response = await site.post(
        "/submit/send",
        {"repo": "https://github.com/vskill-examples/nothing-here", "path": "x"},
        seen="/submit",
    )
    page = await site.page(response.headers["location"])
    assert "0 of 1 published" in page.text
    assert "no public repository" in page.text


# Corrected archives.

BAD = "---\nname: packed\ndescription: A packed skill.\nversion: 0.1.0\n---\n# Packed\n"


def archive(text: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as opened:
        opened.writestr("SKILL.md", text)
    return made.getvalue()


async def failed_upload(env: Env, account: str = "ann") -> str:
    identity = upload_identity(account, "packed")
    record = make_submission("packed", state=State.TIER1_FAILED, at=NOW, identity=identity, submitter=account)
    await put_record(env, record)
    return f"/submissions/{record.id}"


async def test_a_failed_upload_offers_another_archive_and_not_the_same_bytes_again(env: Env):
    address = await failed_upload(env)
    async with browsing(env, "ann") as client, browsing(env, "bob") as other:
        own, foreign = (await client.get(address)).text, (await other.get(address)).text
    assert "Upload a corrected archive" in own
    assert "Submit again" not in own
    assert "Upload a corrected archive" not in foreign


async def test_a_corrected_archive_is_the_next_run_of_the_same_submission(env: Env):
    address = await failed_upload(env)
    async with browsing(env, "ann") as client:
        page = Page((await client.get(address)).text)
        csrf = next(one["value"] for one in page.all("input") if one.get("name") == "csrf")
        files = {"archive": ("skill.zip", archive(BAD), "application/zip")}
        sent = await client.post(f"{address}/upload", data={"csrf": csrf, "back": address}, files=files)
        assert (sent.status_code, sent.headers["location"]) == (303, address)
        await run_until_quiet(env)
        assert "Upload a new version" in (await client.get(address)).text
        wrong = {"archive": ("skill.zip", b"no archive", "application/zip")}
        refused = await client.post(f"{address}/upload", data={"csrf": csrf, "back": address}, files=wrong)
        assert refused.headers["location"] == address
        assert "archive" in (await client.get(address)).text
    record = await get_submission(address.rpartition("/")[2])
    assert (record.run, record.state) == (2, State.PUBLISHED)


async def test_nobody_corrects_the_upload_of_another(env: Env):
    address = await failed_upload(env)
    async with browsing(env, "bob") as client:
        page = Page((await client.get("/submit")).text)
        csrf = next(one["value"] for one in page.all("input") if one.get("name") == "csrf")
        files = {"archive": ("skill.zip", archive(BAD), "application/zip")}
        await client.post(f"{address}/upload", data={"csrf": csrf, "back": address}, files=files)
    assert (await get_submission(address.rpartition("/")[2])).run == 1
