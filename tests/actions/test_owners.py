"""Owning a repository: a token in it, and nothing less, makes an owner; an owner hands over, and lists what is theirs."""

import asyncio

import pytest

from tests.support.acting import check, claim, controls, principal_for, set_disabled, transfer
from tests.support.envs import active_env, open_test_env, run_until_quiet
from tests.support.faults import HookedKV
from tests.support.git_server import git_server, skill_md
from tests.support.people import make_account
from vskill_client.wire.base import iso_time
from vskill_core.errors import (
    InvalidInput,
    NotPermitted,
    NotSignedIn,
    SourceGone,
    SourceUnavailable,
    StoreUnavailable,
    Unsupported,
)
from vskill_core.identity import normalise
from vskill_platform.actions.people.owners import (
    CLAIM,
    LIST,
    MOST_OWNERS,
    PROOF_FILE,
    PROOF_MS,
    TRANSFER,
    ListOwned,
    OwnedAnswer,
    RepositoryRequest,
    TransferRepository,
)
from vskill_platform.actions.principal import ANYBODY, OPERATOR, Principal
from vskill_platform.domain import keys
from vskill_platform.domain.people.token import TokenScope
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.intake.submit import submit_repository
from vskill_platform.sources.router import UploadSource
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.people.github_accounts import PROOF_MS as SIGN_IN_MS
from vskill_platform.store.people.github_accounts import account_of_github
from vskill_platform.store.people.owners import list_owners, owners_of
from vskill_platform.worker_context import require_env

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
        for name in ("ann", "bob"):
            await make_account(opened, name, Role.AUTHOR)
        yield opened


async def proved(server, account: str = "ann"):
    started = await claim(account, URL)
    folder = server.root / "ann/tools.git"
    files = {**FILES, PROOF_FILE: f"{started.token}\n"}
    if folder.exists():
        server.repos["ann/tools"].commit(files)
    else:
        server.repos = {"ann/tools": server.repo("ann/tools", files)}
    return await check(account, URL)


async def accounts() -> list[str]:
    return [owner.account for owner in await owners_of(REPO)]


async def test_a_token_in_the_repository_makes_an_owner(env, server):
    repo = server.repo("ann/tools", FILES)
    started = await claim("ann", URL)
    assert (started.path, started.url) == (PROOF_FILE, URL)
    assert started.expires_at == iso_time(env.kv.now() + PROOF_MS)
    head = repo.commit({**FILES, PROOF_FILE: f"# who may act\n{started.token}\r\n"})
    ownership = await check("ann", URL)
    (owner,) = ownership.owners
    assert (owner.account, owner.how, owner.commit) == ("ann", "file", head)
    assert owner.since == iso_time(env.kv.now())
    assert await controls("ann", REPO)
    entry = (await list_audit()).items[0]
    assert (entry.action, entry.target, entry.by) == ("owner added", URL, "user:ann")
    assert await env.kv.get(keys.owner_proof(REPO.repo_key, "ann")) is None
    assert await check("ann", URL) == ownership


async def test_the_first_submitter_has_no_right(env, server):
    server.repo("ann/tools", FILES)
    await submit_repository(URL, by=SubmittedBy("mallory"))
    await run_until_quiet(env)
    with pytest.raises(NotPermitted, match="submitting it gives no such right") as refused:
        await transfer(URL, account="mallory", to="ann", reason="mine")
    assert "claim the repository on your account page" in str(refused.value.details["fix"])
    assert await owners_of(REPO) == ()


async def test_only_the_hash_of_a_token_is_stored(env, server):
    started = await claim("ann", URL)
    for key in (await env.kv.list("")).items:
        assert started.token.encode() not in (await env.kv.get(key)).value


async def test_a_token_serves_only_its_account_and_its_repository(env, server):
    """A token stands in public: whoever reads it gains nothing."""
    started = await claim("ann", URL)
    server.repo("ann/tools", {PROOF_FILE: started.token})
    server.repo("eve/fork", {PROOF_FILE: started.token})
    await claim("eve", URL)
    with pytest.raises(NotPermitted, match="does not hold the latest token of eve"):
        await check("eve", URL)
    fork = "https://github.com/eve/fork"
    with pytest.raises(NotPermitted, match="has no claim"):
        await check("ann", fork)
    await claim("ann", fork)
    with pytest.raises(NotPermitted, match="does not hold"):
        await check("ann", fork)


async def test_a_token_expires_after_seven_days_and_the_next_one_replaces_it(env, server):
    old = await claim("ann", URL)
    repo = server.repo("ann/tools", {PROOF_FILE: old.token})
    env.clock.advance(PROOF_MS)
    with pytest.raises(NotPermitted, match="expired"):
        await check("ann", URL)
    new = await claim("ann", URL)
    with pytest.raises(NotPermitted, match="does not hold"):
        await check("ann", URL)
    repo.commit({PROOF_FILE: f"{old.token}\n{new.token}"})
    assert any(one.account == "ann" for one in (await check("ann", URL)).owners)


async def test_a_token_that_is_still_stored_after_its_time_is_not_good(env, server):
    started = await claim("ann", URL)
    server.repo("ann/tools", {PROOF_FILE: started.token})
    key = keys.owner_proof(REPO.repo_key, "ann")
    entry = await env.kv.get(key)
    await env.kv.put(key, entry.value)
    env.clock.advance(PROOF_MS)
    with pytest.raises(NotPermitted, match="expired"):
        await check("ann", URL)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00", b"x" * 400_000, ("120000", b"SKILL.md"), b"\n" * 10_000]
)
async def test_an_odd_file_proves_nothing(env, server, content):
    server.repo("ann/tools", {**FILES, PROOF_FILE: content})
    await claim("ann", URL)
    with pytest.raises(NotPermitted):
        await check("ann", URL)
    assert await accounts() == []


async def test_no_file_says_where_it_was_looked_for(env, server):
    server.repo("ann/tools", FILES)
    await claim("ann", URL)
    with pytest.raises(NotPermitted, match=r"no file \.well-known/vskill-owner\.txt at the default branch"):
        await check("ann", URL)


async def test_a_file_on_another_branch_proves_nothing(env, server):
    started = await claim("ann", URL)
    repo = server.repo("ann/tools", FILES)
    repo.branch = "attack"
    repo.commit({PROOF_FILE: started.token})
    with pytest.raises(NotPermitted):
        await check("ann", URL)


async def test_a_host_that_is_down_and_a_repository_that_is_gone_are_said_as_such(env, server):
    await claim("ann", URL)
    with pytest.raises(SourceGone):
        await check("ann", URL)
    server.faults["/ann"] = 503
    with pytest.raises(SourceUnavailable):
        await check("ann", URL)
    with active_env(env, sources=UploadSource(env.blobs)), pytest.raises(Unsupported):
        await check("ann", URL)


async def test_several_accounts_prove_it_side_by_side(env, server):
    first, second = [await claim(name, URL) for name in ("ann", "bob")]
    server.repo("ann/tools", {PROOF_FILE: f"{first.token}\n{second.token}\n"})
    await asyncio.gather(check("ann", URL), check("bob", URL))
    assert sorted(await accounts()) == ["ann", "bob"]


async def test_an_unknown_outcome_makes_one_owner_and_one_entry(env, server):
    started = await claim("ann", URL)
    server.repo("ann/tools", {PROOF_FILE: started.token})
    hooked = HookedKV(env.kv)
    died: list[int] = []

    async def die(_operations):
        if not died:
            died.append(1)
            raise StoreUnavailable("the connection died")

    hooked.after_commit = die
    with active_env(env, kv=hooked):
        assert any(one.account == "ann" for one in (await check("ann", URL)).owners)
    assert died and await accounts() == ["ann"]
    assert [one.action for one in (await list_audit()).items].count("owner added") == 1


async def test_an_owner_hands_over_and_both_are_told_of(env, server):
    await proved(server)
    changed = await transfer(URL, account="ann", to="bob", reason="moved on")
    assert [(owner.account, owner.how, owner.handed_over_by) for owner in changed.owners] == [
        ("bob", "transfer", "ann")
    ]
    assert not await controls("ann", REPO)
    (kept,) = await owners_of(REPO)
    assert kept.reason == "moved on"
    with pytest.raises(NotPermitted):
        await transfer(URL, account="ann", to="bob", reason="again")
    refused, entry = (await list_audit(limit=2)).items
    assert (refused.action, refused.by, refused.outcome) == ("owner.transfer", "user:ann", "refused")
    assert (entry.action, entry.by, entry.reason) == ("owner transferred", "user:ann", "moved on")
    assert (entry.target, entry.details) == (URL, {"from": "ann", "to": "bob"})


async def test_a_transfer_is_one_commit(env, server):
    await proved(server)
    hooked = HookedKV(env.kv)
    with active_env(env, kv=hooked):
        await transfer(URL, account="ann", to="bob", reason="moved on")
    assert len(hooked.commits) == 1


async def test_only_the_operator_hands_over_for_another_account(env, server):
    await proved(server)
    request = TransferRepository(repo_url=URL, to="bob", reason="ann has left", account="ann")
    for actor in (Principal("bob", Role.AUTHOR), Principal("ada", Role.ADMIN)):
        with pytest.raises(NotPermitted):
            await TRANSFER(env, actor, request)
    with pytest.raises(InvalidInput, match="Only an account") as refused:
        await TRANSFER(env, OPERATOR, TransferRepository(repo_url=URL, to="bob", reason="x"))
    assert refused.value.field == "account"
    await TRANSFER(env, OPERATOR, request)
    assert await accounts() == ["bob"]
    entry = (await list_audit()).items[0]
    assert (entry.by, entry.details) == ("admin:command line", {"from": "ann", "to": "bob"})
    with pytest.raises(NotPermitted, match="ann is not an owner"):
        await TRANSFER(env, OPERATOR, request)


async def test_handing_over_to_somebody_who_is_an_owner_already_leaves_one_part(env, server):
    tokens = [(await claim(name, URL)).token for name in ("ann", "bob")]
    server.repo("ann/tools", {PROOF_FILE: "\n".join(tokens)})
    for name in ("ann", "bob"):
        await check(name, URL)
    changed = await transfer(URL, account="ann", to="bob", reason="moved on")
    assert [(owner.account, owner.how) for owner in changed.owners] == [("bob", "file")]
    assert await accounts() == ["bob"]


async def test_a_transfer_goes_to_an_account_that_can_sign_in(env, server):
    """A repository that is handed over to nobody would be lost."""
    await proved(server)
    await set_disabled("bob", disabled=True, by="system", reason="left")
    for to, reason in (("ann", "x"), ("", "x"), ("eve", "x"), ("bob", "x"), ("x" * 101, "x"), ("a\nb", "x")):
        with pytest.raises(InvalidInput) as refused:
            await transfer(URL, account="ann", to=to, reason=reason)
        assert refused.value.field == "to" and refused.value.fix
    with pytest.raises(InvalidInput):
        await transfer(URL, account="ann", to="bob", reason=" ")
    assert await accounts() == ["ann"]


async def test_a_repository_has_a_bounded_number_of_owners(env, server):
    names = [f"a{number:02}" for number in range(MOST_OWNERS + 1)]
    tokens = [(await claim(name, URL)).token for name in names]
    server.repo("ann/tools", {PROOF_FILE: "\n".join(tokens)})
    for name in names[:-1]:
        await check(name, URL)
    with pytest.raises(InvalidInput, match="owners, which is the limit"):
        await check(names[-1], URL)


async def test_an_upload_is_not_claimed(env):
    place = "upload://ann/x"
    for acting in (claim("ann", place), check("ann", place)):
        with pytest.raises(InvalidInput, match="has no repository to claim"):
            await acting


@pytest.mark.parametrize("act", [claim, check])
async def test_an_address_that_names_no_repository_is_refused_by_field(env, act):
    with pytest.raises(InvalidInput) as refused:
        await act("ann", "nonsense")
    assert refused.value.field == "repo_url" and refused.value.fix


async def test_claims_need_an_account_and_the_scope(env):
    request = RepositoryRequest(repo_url=URL)
    with pytest.raises(NotSignedIn):
        await CLAIM(env, ANYBODY, request)
    with pytest.raises(NotPermitted, match="scope 'own'"):
        await CLAIM(env, Principal("ann", Role.AUTHOR, frozenset({"read", "submit"})), request)
    with pytest.raises(InvalidInput, match="Only an account") as refused:
        await CLAIM(env, OPERATOR, request)
    assert refused.value.fix == "add --as ACCOUNT"
    assert (await CLAIM(env, Principal("ann", Role.AUTHOR, frozenset({TokenScope.OWN.value})), request)).token


# Signing in with GitHub.


async def test_github_accounts_own_their_repositories_and_cannot_hand_that_over(env, server):
    await account_of_github("7", "ann-hub")
    url = "https://github.com/ann-hub/tools"
    assert await controls("ann-hub", normalise(url))
    with pytest.raises(NotPermitted, match="by signing in with GitHub") as refused:
        await transfer(url, account="ann-hub", to="bob", reason="moved on")
    assert "let the other account claim it" in str(refused.value.details["fix"])


async def test_a_sign_in_is_listed_while_it_is_good(env):
    await account_of_github("7", "ann-hub")
    owned = await owned_by("user:ann-hub")
    assert (owned.github_login, owned.github_until) == ("ann-hub", iso_time(env.kv.now() + SIGN_IN_MS))
    env.clock.advance(SIGN_IN_MS)
    assert (await owned_by("user:ann-hub")).github_login is None


# Listing.


async def owned_by(by: str, account: str | None = None) -> OwnedAnswer:
    return await LIST(require_env(), principal_for(by), ListOwned(account=account))


async def test_owners_are_listed_by_account(env, server):
    await proved(server)
    assert [one.url for one in await list_owners()] == [URL]
    assert [one.url for one in (await owned_by("user:ann")).repositories] == [URL]
    assert (await owned_by("user:bob")).repositories == ()
    assert [one.url for one in (await LIST(env, OPERATOR, ListOwned())).repositories] == [URL]


async def test_only_admins_list_what_another_account_controls(env, server):
    await proved(server)
    with pytest.raises(NotPermitted, match="Only admins"):
        await owned_by("user:bob", "ann")
    assert [one.url for one in (await owned_by("admin:ada", "ann")).repositories] == [URL]


async def test_claims_are_listed_until_they_are_proved_or_expire(env, server):
    for url in ("https://github.com/ann/other", URL):
        await claim("ann", url)
        env.clock.advance(1000)
    await claim("bob", URL)
    claims = (await owned_by("user:ann")).claims
    assert [one.url for one in claims] == ["https://github.com/ann/other", URL]
    await proved(server)
    assert [one.url for one in (await owned_by("user:ann")).claims] == ["https://github.com/ann/other"]
    env.clock.advance(PROOF_MS)
    assert (await owned_by("user:ann")).claims == ()
