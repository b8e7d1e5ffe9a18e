"""What carries a name beside the skills themselves: blocks, taints and collections show a reader what it may read, and
what it may not read is as if it were not there."""

import httpx2
import msgspec
import pytest

from tests.support.acting import create_token
from tests.support.envs import make_submission, open_test_env, put_record, run_until_quiet, submit_skill
from tests.support.namespaces import manage, set_mode
from vskill_client.wire.base import NoParameters
from vskill_core.errors import InvalidInput, NotFound, SourceGone
from vskill_core.findings import Severity
from vskill_core.identity import normalise
from vskill_platform.actions.principal import ANYBODY, OPERATOR, Principal, resolve
from vskill_platform.actions.recall.blocklist import (
    BLOCK,
    BLOCKS,
    LIFT,
    BlockReach,
    BlockSomething,
    LiftBlock,
)
from vskill_platform.actions.recall.blocklist_reads import (
    CHECK_BLOCKLIST,
    READ_BLOCKLIST,
    CheckAnswer,
    CheckBlocklist,
    ReadBlocklist,
)
from vskill_platform.actions.review.reports import FILE, UPHOLD, FileReport, UpholdReport
from vskill_platform.actions.skills.collections import (
    ADD_SKILLS,
    CREATE_COLLECTION,
    LIST_COLLECTIONS,
    ChangeCollection,
    CreateCollection,
    read_collection,
)
from vskill_platform.domain.blocklist import BlockEntry, TargetKind, digest_target, name_target
from vskill_platform.domain.people.namespace import EVERYTHING, PUBLIC, SEVERAL, RegistryMode, Visibility
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.domain.submissions.states import State
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.store.people.accounts import Role, create_user
from vskill_platform.store.recall.blocklist import add_block, find_hits, list_blocks
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.web.app import create_app
from vskill_platform.worker_context import Env

pytestmark = pytest.mark.anyio

ANN, BOB = Principal("ann", Role.AUTHOR), Principal("bob", Role.AUTHOR)
EVE = Principal("eve", Role.REVIEWER)
ALL = SubmittedBy("ann", EVERYTHING)
CANARY = "https://github.com/acme/secret-repo"


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("sqlite", tmp_path) as opened:
        await manage(opened, "upload~acme", Visibility.TEAM, "user:ann")
        await manage(opened, "acme", Visibility.TEAM, "user:ann")
        yield opened


async def publish(env: Env, name: str, namespace: str, body: str = "") -> PublishedSkill:
    await submit_skill(name, body, namespace=namespace, by=ALL)
    await run_until_quiet(env)
    return await get_skill(f"upload~{namespace}/skills/{name}")


async def block(env: Env, kind: TargetKind, target: str) -> None:
    request = BlockSomething(kind=kind, target=target, reason="it is bad", severity=Severity.HIGH, ahead=True)
    await BLOCK(env, EVE, request)


async def listed(env: Env, who: Principal) -> list[str]:
    return [one.target for one in (await READ_BLOCKLIST(env, who, ReadBlocklist())).entries]


async def check(env: Env, who: Principal, **query: str) -> CheckAnswer:
    return await CHECK_BLOCKLIST(env, who, CheckBlocklist(**query))


# The blocklist.


async def test_a_block_of_a_hidden_place_is_for_its_readers(env: Env):
    record = make_submission("canary", identity=normalise(CANARY, "canary"), audience="ns:acme")
    await put_record(env, record)
    await block(env, TargetKind.PLACE, f"{CANARY}/tree/main/canary")
    query = {"name": "canary", "repo_url": CANARY}
    for who in (ANYBODY, BOB):
        assert await listed(env, who) == []
        assert await check(env, who, **query) == await check(env, who, name="nothing", repo_url=CANARY)
    assert (await check(env, ANN, **query)).blocked
    assert (await check(env, EVE, **query)).blocked
    assert len((await BLOCKS(env, EVE, NoParameters())).entries) == 1
    # The document of the whole registry shows nobody's memberships; workers see everything.
    assert await listed(env, ANN) == []
    assert await find_hits([one.target for one in await list_blocks()])


@pytest.mark.parametrize("kind", [TargetKind.PLACE, TargetKind.REPOSITORY])
async def test_a_block_ahead_is_for_members_of_the_namespace(env: Env, kind: TargetKind):
    await block(env, kind, CANARY)
    (entry,) = await list_blocks()
    assert entry.audience == "ns:acme:team"
    await block(env, kind, "https://github.com/other/open")
    assert len(await listed(env, ANYBODY)) == 1


async def test_a_block_ahead_of_what_a_hidden_upstream_brings_is_for_its_members(env: Env):
    await manage(env, "upstream~canary", Visibility.TEAM, "user:ann")
    await block(env, TargetKind.DIGEST, f"{'a' * 64}@canary")
    assert await listed(env, ANYBODY) == []
    (entry,) = await list_blocks()
    assert entry.audience == "ns:upstream~canary:team"


@pytest.mark.parametrize("name", ["upload~acme/skills/canary", "Upload~Acme/canary"])
async def test_a_full_name_of_a_hidden_skill_blocks_that_skill_for_its_readers(env: Env, name: str):
    hidden = await publish(env, "canary", "acme")
    request = BlockSomething(kind=TargetKind.NAME, target=name, reason="it is bad")
    done = await BLOCK(env, EVE, request)
    assert (done.entry.kind, done.skills) == ("place", (hidden.canonical,))
    assert (await get_skill(hidden.canonical)).current_version is None
    for who in (ANYBODY, BOB):
        assert await listed(env, who) == []
        assert await check(env, who, name=name) == await check(env, who, name="upload~acme/skills/nothing")
    lifted = await LIFT(env, EVE, LiftBlock(kind=TargetKind.NAME, target=name, reason="a mistake"))
    assert lifted.skills == (hidden.canonical,)


@pytest.mark.parametrize("ahead", [False, True])
async def test_a_full_name_that_no_skill_has_is_refused(env: Env, ahead: bool):
    request = BlockSomething(
        kind=TargetKind.NAME, target="upload~acme/skills/soon", reason="it is bad", ahead=ahead
    )
    with pytest.raises(InvalidInput, match="No skill has the name upload~acme/skills/soon"):
        await BLOCK(env, EVE, request)
    assert await list_blocks() == []


async def test_an_entry_about_a_full_name_gets_its_audience_by_the_next_pass(env: Env):
    for namespace in ("acme", "tests"):
        name = f"upload~{namespace}/skills/canary"
        await add_block(BlockEntry(name_target(name), Severity.HIGH, "it is bad", "admin:eve", env.kv.now()))
    await reapply_blocklist()
    assert await listed(env, ANYBODY) == ["upload~tests/skills/canary"]


async def test_a_block_of_content_is_public_as_soon_as_something_public_has_it(env: Env):
    hidden = await publish(env, "canary", "acme", "the same")
    assert hidden.current_digest is not None
    await block(env, TargetKind.DIGEST, hidden.current_digest)
    assert await listed(env, ANYBODY) == []
    assert not (await check(env, ANYBODY, hash=hidden.current_digest)).blocked
    assert (await check(env, ANN, hash=hidden.current_digest)).blocked
    await put_record(env, make_submission("copy", digest=hidden.current_digest))
    await reapply_blocklist()
    assert await listed(env, ANYBODY) == [hidden.current_digest]
    assert (await check(env, ANYBODY, hash=hidden.current_digest)).blocked


async def test_a_public_entry_does_not_name_the_hidden_skill_that_it_was_found_in(env: Env):
    """The report was about the hidden skill; a public one has the same content."""
    hidden = await publish(env, "canary", "acme")
    filed = await FILE(env, ANN, FileReport(skill=hidden.canonical, reason="it steals"))
    request = UpholdReport(report_id=filed.id, reason="it does", block=BlockReach.VERSION)
    await UPHOLD(env, EVE, request)
    assert hidden.current_digest is not None
    await put_record(env, make_submission("copy", digest=hidden.current_digest))
    await reapply_blocklist()
    for who in (ANYBODY, BOB):
        answer = await READ_BLOCKLIST(env, who, ReadBlocklist())
        assert [one.target for one in answer.entries] == [hidden.current_digest]
        assert b"canary" not in msgspec.json.encode(answer)
        assert b"acme" not in msgspec.json.encode(answer)
    found = await check(env, ANN, hash=hidden.current_digest)
    assert found.entry is not None and found.entry.skill_name == hidden.canonical


async def test_content_of_two_hidden_namespaces_is_for_reviewers_only(env: Env):
    for number, audience in enumerate(("ns:acme", "ns:other")):
        record = make_submission(f"canary-{number}", digest="d" * 64, audience=audience)
        await put_record(env, record)
    await block(env, TargetKind.DIGEST, "d" * 64)
    (entry,) = await list_blocks()
    assert entry.audience == SEVERAL
    assert not (await check(env, ANN, hash="d" * 64)).blocked
    assert (await check(env, EVE, hash="d" * 64)).blocked


async def test_the_pass_narrows_an_entry_whose_namespace_became_private(env: Env):
    """An entry from before there were audiences is public, and follows what it hits."""
    record = make_submission("canary", identity=normalise(CANARY, "canary"), digest="d" * 64)
    await put_record(env, record)
    await block(env, TargetKind.DIGEST, "d" * 64)
    assert await listed(env, ANYBODY) == ["d" * 64]
    current = await env.kv.get(record.key)
    assert current is not None
    stored = {**msgspec.json.decode(current.value), "audience": "ns:acme"}
    await env.kv.put(record.key, msgspec.json.encode(stored))
    await reapply_blocklist()
    assert await listed(env, ANYBODY) == []
    (entry,) = await find_hits([digest_target("d" * 64)])
    assert entry.audience == "ns:acme"
    version = await reapply_blocklist()
    assert await reapply_blocklist(version) == version, "and there is nothing left to do"


async def test_a_hidden_skill_taints_only_what_all_who_see_it_may_read(env: Env):
    repo = "https://github.com/open/tools"
    canary = make_submission("canary", identity=normalise(repo, "canary"), audience="ns:open:team")
    await put_record(env, canary)
    await manage(env, "open", Visibility.PUBLIC, "user:ann")
    await block(env, TargetKind.PLACE, f"{repo}/tree/main/canary")
    for who, tainted in ((ANYBODY, False), (BOB, False), (ANN, True), (EVE, True)):
        assert (await check(env, who, name="neighbour", repo_url=repo)).tainted is tainted


async def test_a_refusal_of_a_hidden_submission_is_told_to_its_readers(env: Env):
    place = normalise("https://github.com/acme/tools", "canary")
    await put_record(env, make_submission("canary", identity=place, state=State.REJECTED, audience="ns:acme"))
    query = {"name": "canary", "repo_url": "https://github.com/acme/tools"}
    assert not (await check(env, BOB, **query)).rejected
    assert (await check(env, ANN, **query)).rejected


# Submitting.


async def test_a_place_whose_skill_is_narrower_than_its_namespace_is_not_there_for_others(env: Env):
    """Its id can be computed, and the namespace is open to all: nobody is told that it was submitted before."""
    await manage(env, "upload~open", Visibility.PUBLIC, "user:ann")
    done = await submit_skill("canary", namespace="open", by=ALL)
    assert done.submission is not None
    await put_record(env, msgspec.structs.replace(done.submission, audience="ns:upload~open:team"))
    others = SubmittedBy("bob", frozenset({PUBLIC, "ns:upload~open", "ns:upload~open:internal"}))
    with pytest.raises(SourceGone) as error:
        await submit_skill("canary", namespace="open", by=others)
    assert done.submission.id not in str(error.value.details)
    assert (await submit_skill("other", namespace="open", by=others)).outcome == "created"
    assert (await submit_skill("canary", namespace="open", by=ALL)).outcome == "duplicate"


# Reports.


async def test_a_report_about_a_hidden_skill_finds_none(env: Env):
    hidden = await publish(env, "canary", "acme")
    errors = []
    for name in (hidden.canonical, "upload~acme/skills/nothing"):
        with pytest.raises(NotFound) as error:
            await FILE(env, BOB, FileReport(skill=name, reason="what is this"))
        errors.append(error.value.message.replace(name, "NAME"))
    assert errors[0] == errors[1]
    assert (await FILE(env, ANN, FileReport(skill=hidden.canonical, reason="what is this"))).new


# Collections.


async def collect(env: Env, name: str, *skills: str, namespace: str = "") -> None:
    await CREATE_COLLECTION(env, OPERATOR, CreateCollection(name=name, namespace=namespace, reason="a test"))
    if skills:
        await ADD_SKILLS(env, OPERATOR, ChangeCollection(name=name, skills=skills, reason="a test"))


async def collections(env: Env, who: Principal) -> dict[str, tuple[str, ...]]:
    found = await LIST_COLLECTIONS(env, who, NoParameters())
    return {one.name: one.skills for one in found.collections}


async def test_a_collection_of_a_namespace_is_for_its_readers(env: Env):
    hidden = await publish(env, "canary", "acme")
    shown = await publish(env, "open", "tests")
    await collect(env, "secret", hidden.canonical, shown.canonical, namespace="upload~acme")
    for who in (ANYBODY, BOB):
        assert await collections(env, who) == {}
        for name in ("secret", "nothing"):
            with pytest.raises(NotFound) as error:
                await read_collection(env, await resolve(who), name)
            assert error.value.message.replace(name, "NAME") == "There is no collection 'NAME'."
    for who in (ANN, EVE, OPERATOR):
        assert await collections(env, who) == {"secret": (hidden.canonical, shown.canonical)}


async def test_a_collection_shows_what_every_reader_of_it_may_read(env: Env):
    """It was put together while the namespace was open to all."""
    inner = await publish(env, "canary", "inner")
    shown = await publish(env, "open", "tests")
    await collect(env, "mixed", inner.canonical, shown.canonical)
    await manage(env, "upload~inner", Visibility.INTERNAL)
    entry = await env.kv.get(f"skill:{inner.canonical}")
    assert entry is not None
    stored = {**msgspec.json.decode(entry.value), "audience": "ns:upload~inner"}
    await env.kv.put(entry.key, msgspec.json.encode(stored))
    for who in (ANYBODY, BOB, ANN):
        assert await collections(env, who) == {"mixed": (shown.canonical,)}, "the same for all"
        assert (await read_collection(env, await resolve(who), "mixed")).skills == (shown.canonical,)
    # An admin must see what there is to remove; the document is the same for all.
    assert await collections(env, OPERATOR) == {"mixed": (inner.canonical, shown.canonical)}
    assert (await read_collection(env, await resolve(OPERATOR), "mixed")).skills == (shown.canonical,)
    await set_mode(env, RegistryMode.INTERNAL)
    assert await collections(env, BOB) == {"mixed": (inner.canonical, shown.canonical)}


async def test_the_marketplace_of_a_namespaces_collection_holds_its_skills_for_its_readers(env: Env):
    hidden = await publish(env, "canary", "acme")
    await collect(env, "secret", hidden.canonical, namespace="upload~acme")
    headers: dict[str, dict[str, str]] = {"nobody": {}}
    for name in ("ann", "bob"):
        await create_user(name, Role.AUTHOR, by="system", reason="a test")
        token = await create_token(name, "test", ["read"], by="system")
        headers[name] = {"authorization": f"Bearer {token.secret}"}
    transport = httpx2.ASGITransport(create_app(env))
    async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as client:
        for who in ("nobody", "bob"):
            answers = [
                await client.get(f"/collections/{name}/marketplace.json", headers=headers[who])
                for name in ("secret", "nothing")
            ]
            assert [one.status_code for one in answers] == [404, 404], who
        answer = await client.get("/collections/secret/marketplace.json", headers=headers["ann"])
    assert [one["name"] for one in answer.json()["plugins"]] == ["canary"]
    assert answer.headers["cache-control"].startswith("private")


async def test_what_not_every_reader_may_read_cannot_be_added(env: Env):
    hidden = await publish(env, "canary", "acme")
    await collect(env, "public")
    request = ChangeCollection(name="public", skills=(hidden.canonical,), reason="a test")
    with pytest.raises(InvalidInput) as error:
        await ADD_SKILLS(env, OPERATOR, request)
    assert error.value.details["field"] == "skills"
    with pytest.raises(InvalidInput) as error:
        await collect(env, "nowhere", namespace="unmanaged")
    assert error.value.details["field"] == "namespace"


async def test_old_records_are_public(env: Env):
    await env.kv.put("collection:old", b'{"name":"old","skills":["a/b/c"]}')
    assert await collections(env, ANYBODY) == {"old": ("a/b/c",)}
    await env.kv.put(
        "block:name:old",
        b'{"target":{"kind":"name","value":"old"},"severity":"high","reason":"bad","discovered_by":"x",'
        b'"discovered_at":1}',
    )
    await env.kv.put("control:blocklist", b"7")
    assert await listed(env, ANYBODY) == ["old"]
    assert (await list_blocks())[0].audience == PUBLIC
