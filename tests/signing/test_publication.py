"""Every published version is vouched for, in the very commit that makes it live; the web side hands it out."""

import base64
import json
from collections.abc import AsyncIterator

import httpx2
import msgspec
import pytest

from tests.incidents.steps import UnfinishedScanner
from tests.support.acting import approve, run_again
from tests.support.envs import ENGINES, active_env, open_test_env, run_until_quiet, skill_files, submit_skill
from tests.support.faults import HookedKV
from tests.support.system_reads import get_submission
from vskill_core.content import SkillFile, digest_of_files
from vskill_core.errors import RecordMalformed
from vskill_core.findings import Severity
from vskill_core.signing_keys import public_from_jwks, public_from_pem
from vskill_core.verification import check_attestation
from vskill_platform.domain import keys
from vskill_platform.domain.blocklist import BlockEntry, digest_target
from vskill_platform.domain.downloads import zip_archive
from vskill_platform.domain.skills import skill_changes
from vskill_platform.domain.skills.skill import StatusRole
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.signing.key_ring import MemoryKeys
from vskill_platform.store.recall.attestations import get_attestation, public_keys
from vskill_platform.store.recall.blocklist import add_block
from vskill_platform.store.skills.skills import get_skill, update_skill
from vskill_platform.web.app import create_app
from vskill_platform.worker_context import Env

pytestmark = pytest.mark.anyio

NAME = "upload~tests/skills/tidy"
FILES = skill_files("tidy")


@pytest.fixture(params=ENGINES)
async def env(request, tmp_path) -> AsyncIterator[Env]:
    async with open_test_env(request.param, tmp_path, registry_name="Our skills") as opened:
        yield opened


@pytest.fixture
async def client(env) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(create_app(env))
    async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as opened:
        yield opened


async def published(env: Env, body: str = "", extra: tuple[SkillFile, ...] = ()) -> Submission:
    submitted = (await submit_skill("tidy", body, extra=extra)).submission
    assert submitted is not None
    await run_until_quiet(env)
    record = await get_submission(submitted.id)
    assert record.state is State.PUBLISHED, record.history[-1].reason
    return record


async def trusted() -> list:
    return [one.key for one in await public_keys()]


async def test_a_published_version_has_an_attestation_that_verifies(env):
    record = await published(env)
    data = await get_attestation(await get_skill(NAME), "1.0.0")
    checked = check_attestation(data, await trusted(), archive=zip_archive(FILES))
    about = checked.statement.predicate
    assert (about.registry, about.skill, about.version) == ("Our skills", NAME, "1.0.0")
    assert (about.submission, about.run, about.certification) == (record.id, 1, "SCANNED")
    assert about.static is not None
    assert (about.static.ruleset, about.static.status) == (env.scanner.ruleset, "complete")
    assert (about.judge, about.judge_status, about.reviewed) == (None, "none", False)
    assert check_attestation(data, await trusted(), files=FILES).content == f"{NAME}@1.0.0"


async def test_it_is_written_in_the_commit_that_publishes(env):
    hooked = HookedKV(env.kv)
    with active_env(env, kv=hooked) as watched:
        await published(watched)
    (commit,) = [
        {operation.key for operation in operations if isinstance(operation, Put)}
        for operations in hooked.commits
        if any(isinstance(one, Put) and one.key.startswith(keys.attestation.prefix) for one in operations)
    ]
    assert {keys.attestation(NAME, "1.0.0"), keys.version(NAME, "1.0.0"), keys.skill(NAME)} <= commit
    assert any(key.startswith(keys.sub.prefix) for key in commit)


async def test_every_version_has_its_own_and_large_content_too(env):
    await published(env)
    large = SkillFile("data.bin", "100755", bytes(range(256)) * 1024)
    await published(env, "more", (large,))
    first, second = [await get_attestation(await get_skill(NAME), number) for number in ("1.0.0", "1.0.1")]
    assert check_attestation(first, await trusted(), files=FILES).statement.predicate.version == "1.0.0"
    files = skill_files("tidy", "more", extra=(large,))
    assert check_attestation(second, await trusted(), archive=zip_archive(files)).content


async def test_content_that_is_verified_again_is_vouched_for_again_by_the_key_of_that_day(env):
    """Same bytes, same version: the newer statement takes the older one's place, and both keys stay known."""
    assert env.signing is not None
    record = await published(env)
    before = (await env.signing.current()).public
    await env.signing.rotate()
    await run_again(record.id, by="admin:eve", reason="look again")
    await run_until_quiet(env)
    checked = check_attestation(
        await get_attestation(await get_skill(NAME), "1.0.0"), await trusted(), files=FILES
    )
    assert (checked.statement.predicate.run, checked.key) == (2, (await env.signing.current()).public)
    listed = {one.key: one.active for one in await public_keys()}
    assert listed == {checked.key: True, before: False}


async def test_what_a_reviewer_approved_says_so_and_what_the_scan_came_to(env):
    with active_env(env, scanner=UnfinishedScanner()) as failing:
        submitted = (await submit_skill("tidy")).submission
        assert submitted is not None
        await run_until_quiet(failing)
        await approve(submitted.id, by="admin:eve", reason="I have read it")
        await run_until_quiet(failing)
    about = check_attestation(
        await get_attestation(await get_skill(NAME), "1.0.0"), await trusted()
    ).statement.predicate
    assert (about.reviewed, about.certification) == (True, "CERTIFIED")
    assert about.static is not None and about.static.status == "timed_out"
    assert "eve" not in msgspec.json.encode(about).decode(), "who it was is the registry's business"


async def test_keys_that_signed_on_another_machine_are_served_too(env):
    """Each machine has a key of its own; the store knows all that signed something."""
    with active_env(env, signing=MemoryKeys()) as elsewhere:
        await published(elsewhere)
    checked = check_attestation(await get_attestation(await get_skill(NAME), "1.0.0"), await trusted())
    assert {one.key: one.active for one in await public_keys()}[checked.key] is False


async def test_a_key_record_that_holds_another_key_is_not_believed(env):
    await env.kv.put(
        keys.signer("0" * 16), msgspec.json.encode({"jwk": (await public_keys())[0].jwk, "first_used_at": 1})
    )
    with pytest.raises(RecordMalformed):
        await public_keys()


async def test_where_nothing_is_signed_publishing_goes_on(env):
    with active_env(env, signing=None) as unsigned:
        await published(unsigned)
        assert await public_keys() == ()
    assert (await env.kv.list(keys.attestation.prefix)).items == ()


# On the web.


async def test_the_attestation_is_handed_out_byte_for_byte(env, client):
    await published(env)
    answer = await client.get(f"/api/v1/skills/{NAME}/versions/1.0.0/attestation")
    assert (answer.status_code, answer.headers["content-type"]) == (
        200,
        "application/vnd.dsse.envelope.v1+json",
    )
    assert answer.content == await get_attestation(await get_skill(NAME), "1.0.0")


async def test_the_keys_are_handed_out_as_json_and_pem_and_verify_it(env, client):
    await published(env)
    data = (await client.get(f"/api/v1/skills/{NAME}/versions/1.0.0/attestation")).content
    key_set = await client.get("/.well-known/vskill-keys.json")
    assert key_set.headers["content-type"] == "application/jwk-set+json"
    assert check_attestation(data, public_from_jwks(key_set.content), files=FILES).content
    (listed,) = key_set.json()["keys"]
    assert listed["status"] == "active" and "d" not in listed, "a private key has the member d"
    pem = await client.get("/.well-known/vskill-keys.pem")
    assert check_attestation(data, [public_from_pem(pem.content)]).key.key_id == listed["kid"]
    assert b"PRIVATE" not in pem.content


@pytest.mark.parametrize(
    "place", ["none/skills/tidy/versions/1.0.0", "upload~tests/skills/tidy/versions/9.9.9"]
)
async def test_what_is_not_there_is_a_404_that_says_so(env, client, place):
    await published(env)
    answer = await client.get(f"/api/v1/skills/{place}/attestation")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_a_version_without_an_attestation_says_so(env, client):
    with active_env(env, signing=None) as unsigned:
        await published(unsigned)
    answer = await client.get(f"/api/v1/skills/{NAME}/versions/1.0.0/attestation")
    assert answer.status_code == 404
    assert "has no attestation" in answer.json()["error"]


async def test_what_was_taken_down_is_not_vouched_for(env, client):
    await published(env)
    change = skill_changes.StatusChange(StatusRole.SYSTEM, "system", env.kv.now(), "it was malicious")
    await update_skill(NAME, lambda record: skill_changes.take_down(record, change))
    answer = await client.get(f"/api/v1/skills/{NAME}/versions/1.0.0/attestation")
    assert answer.status_code == 403
    assert "it was malicious" in answer.json()["error"]


async def test_what_is_blocked_is_not_vouched_for_from_the_moment_of_the_entry(env, client):
    await published(env)
    now = env.kv.now()
    entry = BlockEntry(digest_target(digest_of_files(FILES)), Severity.CRITICAL, "bad", "admin:eve", now, now)
    await add_block(entry)
    answer = await client.get(f"/api/v1/skills/{NAME}/versions/1.0.0/attestation")
    assert (answer.status_code, answer.json()["code"]) == (403, "blocked")


async def test_an_attestation_can_be_read_by_anyone_who_knows_the_formats(env, client):
    await published(env)
    envelope = (await client.get(f"/api/v1/skills/{NAME}/versions/1.0.0/attestation")).json()
    statement = json.loads(base64.b64decode(envelope["payload"]))
    assert statement["subject"][0]["digest"]["vskillContent"] == digest_of_files(FILES)
