"""Proof of control: a token in the repository, and nothing less, makes an owner."""

import asyncio

import pytest

from tests.support.envs import active_env, open_test_env, run_until_quiet
from tests.support.faults import HookedKV
from tests.support.git_server import git_server, skill_md
from vskill_platform.domain import keys
from vskill_platform.domain.errors import (
    InvalidInput,
    NotPermitted,
    SourceGone,
    SourceUnavailable,
    StoreUnavailable,
    Unsupported,
)
from vskill_platform.domain.identity import normalise, upload_identity
from vskill_platform.intake.submit import submit_repository
from vskill_platform.sources.upload import UploadSource
from vskill_platform.store.audit import list_audit
from vskill_platform.store.owners import (
    MOST_OWNERS,
    PROOF_FILE,
    PROOF_MS,
    check_proof,
    list_owners,
    owners_of,
    require_owner,
    start_proof,
    transfer,
)

pytestmark = pytest.mark.anyio

URL = "https://github.com/ann/tools"
REPO = normalise(URL)
FILES = {"SKILL.md": skill_md("tools")}


@pytest.fixture
def server(tmp_path):
    with git_server(tmp_path / "served") as running:
        yield running


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path, server):
    async with open_test_env(request.param, tmp_path, source_rewrites=(server.rewrite(),)) as opened:
        yield opened


async def proved(server, account: str = "ann"):
    started = await start_proof(account, REPO)
    folder = server.root / "ann/tools.git"
    files = {**FILES, PROOF_FILE: f"{started.token}\n"}
    if folder.exists():
        server.repos["ann/tools"].commit(files)
    else:
        server.repos = {"ann/tools": server.repo("ann/tools", files)}
    return await check_proof(account, REPO)


async def accounts() -> list[str]:
    return [owner.account for owner in await owners_of(REPO)]


async def test_a_token_in_the_repository_makes_an_owner(env, server):
    repo = server.repo("ann/tools", FILES)
    started = await start_proof("ann", REPO)
    assert (started.path, started.url) == (PROOF_FILE, URL)
    assert started.expires_at == env.kv.now() + PROOF_MS
    head = repo.commit({**FILES, PROOF_FILE: f"# who may act\n{started.token}\r\n"})
    ownership = await check_proof("ann", REPO)
    (owner,) = ownership.owners
    assert (owner.account, owner.how, owner.commit, owner.since) == ("ann", "file", head, env.kv.now())
    await require_owner("ann", REPO)
    (entry,) = (await list_audit()).items
    assert (entry.action, entry.target, entry.by) == ("owner added", URL, "user:ann")
    assert await env.kv.get(keys.owner_proof(REPO, "ann")) is None
    assert await check_proof("ann", REPO) == ownership


async def test_the_first_submitter_has_no_right(env, server):
    server.repo("ann/tools", FILES)
    await submit_repository(URL, submitter="mallory")
    await run_until_quiet(env)
    with pytest.raises(NotPermitted, match="has not proved control"):
        await require_owner("mallory", REPO)
    assert await owners_of(REPO) == ()


async def test_only_the_hash_of_a_token_is_stored(env, server):
    started = await start_proof("ann", REPO)
    for key in (await env.kv.list("")).items:
        assert started.token.encode() not in (await env.kv.get(key)).value


async def test_a_token_serves_only_its_account_and_its_repository(env, server):
    """A token stands in public: whoever reads it gains nothing."""
    started = await start_proof("ann", REPO)
    server.repo("ann/tools", {PROOF_FILE: started.token})
    server.repo("eve/fork", {PROOF_FILE: started.token})
    await start_proof("eve", REPO)
    with pytest.raises(NotPermitted, match="does not hold the token of eve"):
        await check_proof("eve", REPO)
    fork = normalise("https://github.com/eve/fork")
    with pytest.raises(NotPermitted, match="has no token"):
        await check_proof("ann", fork)
    await start_proof("ann", fork)
    with pytest.raises(NotPermitted, match="does not hold"):
        await check_proof("ann", fork)


async def test_a_token_expires_after_seven_days_and_the_next_one_replaces_it(env, server):
    old = await start_proof("ann", REPO)
    repo = server.repo("ann/tools", {PROOF_FILE: old.token})
    env.clock.advance(PROOF_MS)
    with pytest.raises(NotPermitted, match="expired"):
        await check_proof("ann", REPO)
    new = await start_proof("ann", REPO)
    with pytest.raises(NotPermitted, match="does not hold"):
        await check_proof("ann", REPO)
    repo.commit({PROOF_FILE: f"{old.token}\n{new.token}"})
    assert (await check_proof("ann", REPO)).has("ann")


async def test_a_token_that_is_still_stored_after_its_time_is_not_good(env, server):
    started = await start_proof("ann", REPO)
    server.repo("ann/tools", {PROOF_FILE: started.token})
    key = keys.owner_proof(REPO, "ann")
    entry = await env.kv.get(key)
    await env.kv.put(key, entry.value)
    env.clock.advance(PROOF_MS)
    with pytest.raises(NotPermitted, match="expired"):
        await check_proof("ann", REPO)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00", b"x" * 400_000, ("120000", b"SKILL.md"), b"\n" * 10_000]
)
async def test_an_odd_file_proves_nothing(env, server, content):
    server.repo("ann/tools", {**FILES, PROOF_FILE: content})
    await start_proof("ann", REPO)
    with pytest.raises(NotPermitted):
        await check_proof("ann", REPO)
    assert await accounts() == []


async def test_no_file_says_where_it_was_looked_for(env, server):
    server.repo("ann/tools", FILES)
    await start_proof("ann", REPO)
    with pytest.raises(NotPermitted, match=r"no file \.well-known/vskill-owner\.txt at the default branch"):
        await check_proof("ann", REPO)


async def test_a_file_on_another_branch_proves_nothing(env, server):
    started = await start_proof("ann", REPO)
    repo = server.repo("ann/tools", FILES)
    repo.branch = "attack"
    repo.commit({PROOF_FILE: started.token})
    with pytest.raises(NotPermitted):
        await check_proof("ann", REPO)


async def test_a_host_that_is_down_and_a_repository_that_is_gone_are_said_as_such(env, server):
    await start_proof("ann", REPO)
    with pytest.raises(SourceGone):
        await check_proof("ann", REPO)
    server.faults["/ann"] = 503
    with pytest.raises(SourceUnavailable):
        await check_proof("ann", REPO)
    with active_env(env, sources=UploadSource(env.blobs)), pytest.raises(Unsupported):
        await check_proof("ann", REPO)


async def test_several_accounts_prove_it_side_by_side(env, server):
    first, second = [await start_proof(name, REPO) for name in ("ann", "bob")]
    server.repo("ann/tools", {PROOF_FILE: f"{first.token}\n{second.token}\n"})
    await asyncio.gather(check_proof("ann", REPO), check_proof("bob", REPO))
    assert sorted(await accounts()) == ["ann", "bob"]


async def test_an_unknown_outcome_makes_one_owner_and_one_entry(env, server):
    started = await start_proof("ann", REPO)
    server.repo("ann/tools", {PROOF_FILE: started.token})
    hooked = HookedKV(env.kv)
    died: list[int] = []

    async def die(_operations):
        if not died:
            died.append(1)
            raise StoreUnavailable("the connection died")

    hooked.after_commit = die
    with active_env(env, kv=hooked):
        assert (await check_proof("ann", REPO)).has("ann")
    assert died and await accounts() == ["ann"]
    assert len((await list_audit()).items) == 1


async def test_an_owner_hands_over_and_has_no_part_any_more(env, server):
    await proved(server)
    changed = await transfer(REPO, account="ann", to="bob", reason="moved on")
    assert [(owner.account, owner.how) for owner in changed.owners] == [("bob", "transfer")]
    with pytest.raises(NotPermitted):
        await require_owner("ann", REPO)
    with pytest.raises(NotPermitted, match="not an owner"):
        await transfer(REPO, account="ann", to="eve", reason="again")
    entry = (await list_audit()).items[0]
    assert (entry.action, entry.details) == ("owner transferred", {"from": "ann", "to": "bob"})


async def test_handing_over_to_somebody_who_is_an_owner_already_leaves_one_part(env, server):
    tokens = [(await start_proof(name, REPO)).token for name in ("ann", "bob")]
    server.repo("ann/tools", {PROOF_FILE: "\n".join(tokens)})
    for name in ("ann", "bob"):
        await check_proof(name, REPO)
    changed = await transfer(REPO, account="ann", to="bob", reason="moved on")
    assert [(owner.account, owner.how) for owner in changed.owners] == [("bob", "file")]
    assert await accounts() == ["bob"]


async def test_a_transfer_is_checked(env, server):
    await proved(server)
    for to, reason in (("ann", "x"), ("", "x"), ("bob", " "), ("x" * 101, "x"), ("a\nb", "x")):
        with pytest.raises(InvalidInput):
            await transfer(REPO, account="ann", to=to, reason=reason)
    assert await accounts() == ["ann"]


async def test_a_repository_has_a_bounded_number_of_owners(env, server):
    names = [f"a{number:02}" for number in range(MOST_OWNERS + 1)]
    tokens = [(await start_proof(name, REPO)).token for name in names]
    server.repo("ann/tools", {PROOF_FILE: "\n".join(tokens)})
    for name in names[:-1]:
        await check_proof(name, REPO)
    with pytest.raises(InvalidInput, match="owners already"):
        await check_proof(names[-1], REPO)


async def test_an_upload_belongs_to_its_namespace(env):
    place = upload_identity("ann", "x")
    await require_owner("Ann", place)
    with pytest.raises(NotPermitted, match="belongs to the namespace ann"):
        await require_owner("bob", place)
    for proving in (start_proof("ann", place), check_proof("ann", place)):
        with pytest.raises(InvalidInput, match="nothing to prove"):
            await proving


async def test_owners_are_listed_by_account(env, server):
    await proved(server)
    assert [one.url for one in (await list_owners()).items] == [URL]
    assert [one.url for one in (await list_owners("ann")).items] == [URL]
    assert (await list_owners("bob")).items == ()
    await env.kv.put("owner:github.com/x/y", b"{")
    assert (await list_owners()).skipped == 1
