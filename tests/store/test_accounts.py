"""Accounts, sessions, tokens and the first admin: nothing secret is stored, everything is audited, and nobody gets in
by a default (E10, E11)."""

import asyncio
import time
from typing import TypedDict

import msgspec
import pytest
from argon2 import PasswordHasher

from tests.support.acting import (
    controls,
    create_token,
    revoke_own_token,
    set_disabled,
    set_password,
    set_role,
    sign_out_everywhere,
)
from tests.support.envs import ENGINES, active_env, open_test_env
from tests.support.faults import HookedKV, dying_once
from tests.support.manual_clock import ManualClock
from tests.support.people import PASSWORD
from vskill_core.errors import InvalidInput, NotFound, NotPermitted, NotSignedIn, RateLimited
from vskill_core.identity import normalise
from vskill_platform.actions.people.tokens import DAY_MS
from vskill_platform.domain import keys
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.store.people import attempts, passwords
from vskill_platform.store.people.accounts import (
    Role,
    User,
    UserChange,
    change_user,
    check_name,
    create_user,
    find_admins,
    get_user,
    list_users,
    read_user,
)
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.people.credentials import (
    IDLE_MS,
    LONGEST_MS,
    USED_EVERY_MS,
    close_session,
    find_session,
    find_token,
    list_all_tokens,
    list_tokens,
    open_session,
    sign_in,
)
from vskill_platform.store.people.github_accounts import PROOF_MS, account_of_github
from vskill_platform.store.people.setup import (
    LINK_MS,
    check_setup,
    first_admin_link,
    make_first_admin,
    new_setup_token,
)
from vskill_platform.worker_context import HashCost

pytestmark = pytest.mark.anyio


class Why(TypedDict):
    by: str
    reason: str


WHY = Why(by="system", reason="for a test")


@pytest.fixture(params=ENGINES)
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path, clock=ManualClock()) as opened:
        yield opened


async def make(name: str = "ann", role: Role = Role.AUTHOR, password: str | None = None):
    return await create_user(name, role, password=password, **WHY)


async def audited() -> list[str]:
    return [entry.action for entry in (await list_audit()).items]


async def stored(env) -> bytes:
    """Every byte in the store."""
    found = b""
    page = await env.kv.scan("", limit=1000)
    for entry in page.items:
        found += entry.value
    return found


# Accounts.


async def test_an_account_is_made_once_and_audited(env):
    await make(role=Role.REVIEWER)
    with pytest.raises(InvalidInput, match="already"):
        await make()
    assert (await get_user("ann")).role is Role.REVIEWER
    assert await audited() == ["account created"]


@pytest.mark.parametrize(
    "name", ["", "Ann", "a" * 51, "-a", "a-", "a--b", "a b", "a:b", "a/b", "é", "system", "a\n", "анн"]
)
async def test_a_name_that_could_be_mistaken_is_refused(env, name):
    with pytest.raises(InvalidInput, match="a-z"):
        await make(name)


@pytest.mark.parametrize("name", ["a", "ann", "a-b-c", "0x", "a" * 50])
def test_a_plain_name_is_accepted(name):
    assert check_name(name) == name


async def test_the_password_is_stored_only_as_an_argon2id_hash(env):
    user = await make(password=PASSWORD)
    assert user.password is not None and user.password.startswith("$argon2id$")
    assert PASSWORD.encode() not in await stored(env)
    assert user.password not in repr(user)


@pytest.mark.parametrize("password", ["", "short", "aaaaaaaaaaaaaaaa", "x" * 201])
async def test_a_weak_password_is_refused_with_the_fix(env, password):
    with pytest.raises(InvalidInput) as caught:
        await make(password=password)
    assert caught.value.field == "password" and caught.value.fix
    with pytest.raises(NotFound):
        await get_user("ann")


async def test_E11_no_account_and_no_password_exist_by_default(env):
    assert (await list_users()).items == ()
    for name, password in [("admin", "admin"), ("admin", "password"), ("root", ""), ("admin", "")]:
        with pytest.raises(NotSignedIn):
            await sign_in(name, password, "192.0.2.1")


async def test_every_change_of_an_account_is_audited_with_who_and_why(env):
    await make("a", Role.ADMIN)
    await make()
    await set_role("ann", Role.REVIEWER, by="admin:a", reason="she knows the rules")
    await set_disabled("ann", disabled=True, by="admin:a", reason="on leave")
    await set_disabled("ann", disabled=False, by="admin:a", reason="back")
    await sign_out_everywhere("ann")
    made = await create_token("ann", "laptop", ["read"], by="user:ann")
    await revoke_own_token("ann", made.token.id)
    entries = (await list_audit()).items
    assert [entry.action for entry in reversed(entries)] == [
        "account created",
        "account created",
        "account role",
        "account disabled",
        "account enabled",
        "signed out everywhere",
        "token created",
        "token revoked",
    ]
    assert all(entry.reason and entry.by for entry in entries)


async def test_an_unknown_outcome_makes_and_changes_an_account_once(env):
    with active_env(env, kv=dying_once(env.kv)):
        assert (await make()).name == "ann"
    with active_env(env, kv=dying_once(env.kv)):
        assert (await set_role("ann", Role.REVIEWER, **WHY)).role is Role.REVIEWER
    with active_env(env, kv=dying_once(env.kv)):
        await create_token("ann", "laptop", ["read"], by="user:ann")
    user = await get_user("ann")
    assert (user.role, len(user.tokens)) == (Role.REVIEWER, 1)
    assert await audited() == ["token created", "account role", "account created"]


async def test_accounts_are_listed_page_by_page_to_the_end(env):
    names = [f"user-{number}" for number in range(7)]
    for name in names:
        await make(name)
    found, after = [], None
    while True:
        page = await list_users(after=after, limit=3)
        found += [user.name for user in page.items]
        after = page.after
        if after is None:
            break
    assert found == names


# Signing in.


async def test_the_right_password_signs_in_whatever_the_case_of_the_name(env):
    await make(password=PASSWORD)
    assert (await sign_in(" Ann ", PASSWORD, "192.0.2.1")).name == "ann"


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("ann", "wrong password here"),
        ("nobody", PASSWORD),
        ("ann", ""),
        ("ann:x", PASSWORD),
        ("", ""),
        ("a\x00", "x"),
    ],
)
async def test_what_is_wrong_is_not_told(env, name, password):
    await make(password=PASSWORD)
    with pytest.raises(NotSignedIn) as caught:
        await sign_in(name, password, "192.0.2.1")
    assert caught.value.message == "The name or the password is wrong."


async def test_a_disabled_account_and_one_without_a_password_do_not_sign_in(env):
    await make(password=PASSWORD)
    await make("hub")
    await set_disabled("ann", disabled=True, **WHY)
    for name in ("ann", "hub"):
        with pytest.raises(NotSignedIn):
            await sign_in(name, PASSWORD, "192.0.2.1")


async def test_an_unknown_name_costs_as_much_as_a_wrong_password(env, monkeypatch):
    """Both do exactly one argon2 computation, which the library is watched for, of the same cost."""
    done: list[tuple[int, int, int]] = []

    def watch(name: str) -> None:
        real = getattr(PasswordHasher, name)

        def watched(hasher, *arguments):
            done.append((hasher.time_cost, hasher.memory_cost, hasher.parallelism))
            return real(hasher, *arguments)

        monkeypatch.setattr(PasswordHasher, name, watched)

    await make(password=PASSWORD)
    watch("hash")
    watch("verify")
    cost = (env.hash_cost.passes, env.hash_cost.memory_kib, env.hash_cost.lanes)
    for name in ("ann", "nobody"):
        done.clear()
        with pytest.raises(NotSignedIn):
            await sign_in(name, "not the right one", "192.0.2.1")
        assert done == [cost]


def test_a_hash_costs_what_is_recommended():
    recommended = PasswordHasher()
    cost = HashCost()
    assert (cost.passes, cost.memory_kib, cost.lanes) == (
        recommended.time_cost,
        recommended.memory_cost,
        recommended.parallelism,
    )


async def test_what_follows_after_the_longest_password_counts_too(env):
    """A longer one is cut before it is computed with, and is then still another one."""
    longest = "abcd" * (passwords.MOST_PASSWORD // 4)
    await make(password=longest)
    for longer in (longest + "e", longest * 1000):
        with pytest.raises(NotSignedIn):
            await sign_in("ann", longer, "192.0.2.1")
    assert (await sign_in("ann", longest, "192.0.2.1")).name == "ann"


CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


async def with_old_hash() -> str:
    """An account whose password was hashed when that cost less."""
    old = CHEAP.hash(PASSWORD)
    await make()

    async def with_old(user: User) -> UserChange:
        return UserChange(msgspec.structs.replace(user, password=old))

    await change_user("ann", with_old, action="x", **WHY)
    return old


async def test_a_hash_of_a_lower_cost_is_renewed_by_signing_in_and_nobody_is_signed_out(env):
    old = await with_old_hash()
    token = await open_session(await get_user("ann"), "password")
    before, cursor = await audited(), await env.kv.change_cursor()
    await sign_in("ann", PASSWORD, "192.0.2.1")
    renewed = (await get_user("ann")).password
    assert renewed is not None and renewed != old and not passwords.is_outdated(renewed)
    assert await find_session(token) is not None
    assert await audited() == before and (await env.kv.changes(keys.user.prefix, after=cursor)).items == ()
    await sign_in("ann", PASSWORD, "192.0.2.1")
    assert (await get_user("ann")).password == renewed, "once is enough"


async def test_renewing_a_hash_never_brings_an_old_password_back(env):
    await with_old_hash()
    hooked = HookedKV(env.kv)

    async def changed_meanwhile(operations):
        if any(isinstance(one, Put) and one.key == keys.user("ann") for one in operations):
            with active_env(env):
                await set_password("ann", "another sentence of hers", **WHY)

    hooked.before_commit = changed_meanwhile
    with active_env(env, kv=hooked):
        assert (await sign_in("ann", PASSWORD, "192.0.2.1")).name == "ann"
    with pytest.raises(NotSignedIn):
        await sign_in("ann", PASSWORD, "192.0.2.1")
    await sign_in("ann", "another sentence of hers", "192.0.2.1")


@pytest.mark.machine
async def test_argon2_never_blocks_the_event_loop(env):
    """While passwords are checked, at what that really costs, the loop goes on turning."""
    with active_env(env, hash_cost=HashCost()):
        await watch_signing_in()


async def watch_signing_in() -> None:
    await make(password=PASSWORD)
    longest = 0.0
    stop = asyncio.Event()

    async def watch() -> None:
        nonlocal longest
        while not stop.is_set():
            began = time.monotonic()
            await asyncio.sleep(0.001)
            longest = max(longest, time.monotonic() - began)

    watching = asyncio.create_task(watch())
    began = time.monotonic()
    await asyncio.gather(*(sign_in("ann", PASSWORD, f"192.0.2.{n}") for n in range(4)))
    took = time.monotonic() - began
    stop.set()
    await watching
    assert longest < took / 2


async def tried(times: int, name: str = "ann") -> None:
    """Wrong passwords that were given before; computing each would take long."""
    for _ in range(times):
        await attempts.count_attempt(name, "192.0.2.1")


async def test_attempts_are_limited_by_name_and_address_and_the_window_ends(env):
    await make(password=PASSWORD)
    await tried(attempts.MOST_PAIR - 1)
    with pytest.raises(NotSignedIn):
        await sign_in("ann", "wrong", "192.0.2.1")
    with pytest.raises(RateLimited) as caught:
        await sign_in("ann", PASSWORD, "192.0.2.1")
    assert int(str(caught.value.details["retry_after_s"])) > 0
    assert (await sign_in("ann", PASSWORD, "192.0.2.2")).name == "ann"
    env.clock.advance(attempts.WINDOW_MS + 1)
    assert (await sign_in("ann", PASSWORD, "192.0.2.1")).name == "ann"


async def test_names_that_do_not_exist_are_limited_alike(env):
    await tried(attempts.MOST_PAIR - 1, "nobody")
    with pytest.raises(NotSignedIn):
        await sign_in("nobody", "wrong", "192.0.2.1")
    with pytest.raises(RateLimited):
        await sign_in("nobody", "wrong", "192.0.2.1")


async def test_one_address_cannot_try_many_names(env):
    for number in range(attempts.MOST_ADDRESS - 1):
        await tried(1, f"user-{number}")
    with pytest.raises(NotSignedIn):
        await sign_in("user-x", "wrong", "192.0.2.1")
    with pytest.raises(RateLimited):
        await sign_in("user-y", "wrong", "192.0.2.1")


async def test_attempts_at_once_are_all_counted(env):
    done = await asyncio.gather(
        *(attempts.count_attempt("ann", "192.0.2.1") for _ in range(attempts.MOST_PAIR + 4)),
        return_exceptions=True,
    )
    assert sum(isinstance(one, RateLimited) for one in done) == 4


async def test_the_right_password_forgives_mistakes(env):
    await make(password=PASSWORD)
    for _ in range(2):
        await tried(attempts.MOST_PAIR - 1)
        await sign_in("ann", PASSWORD, "192.0.2.1")


# Sessions.


async def test_a_record_that_says_disabled_is_believed_before_anything_else(env):
    """Whatever disabled the account ends its sessions and tokens too; one that is left over lets nobody in."""
    session = await open_session(await make(), "password")
    made = await create_token("ann", "left over", ["read"], by="user:ann")
    _, version = await read_user("ann")
    disabled = msgspec.structs.replace(await get_user("ann"), disabled=True)
    await env.kv.commit([Put(keys.user("ann"), msgspec.json.encode(disabled), version)])
    assert await find_session(session) is None
    assert await find_token(made.secret) is None


async def test_only_the_hash_of_a_session_is_stored(env):
    token = await open_session(await make(), "password")
    assert token.encode() not in await stored(env)
    assert not (await env.kv.list(keys.session.prefix + token)).items
    found = await find_session(token)
    assert found is not None and found[1].name == "ann"


async def test_a_session_slides_while_it_is_used_and_ends_when_it_is_not(env):
    token = await open_session(await make(), "password")
    for _ in range(3):
        env.clock.advance(IDLE_MS[Role.AUTHOR] * 2 // 3)
        assert await find_session(token) is not None
    env.clock.advance(IDLE_MS[Role.AUTHOR] + 1)
    assert await find_session(token) is None


async def test_a_session_is_good_even_where_its_use_cannot_be_written(env):
    token = await open_session(await make(), "password")
    env.clock.advance(IDLE_MS[Role.AUTHOR] * 2 // 3)
    hooked = HookedKV(env.kv)
    hooked.failing = {"commit"}
    with active_env(env, kv=hooked):
        assert await find_session(token) is not None
    env.clock.advance(IDLE_MS[Role.AUTHOR] // 3)
    assert await find_session(token) is None, "the use was not written"


async def test_an_unknown_outcome_signs_in_and_out_once(env):
    user = await make()
    with active_env(env, kv=dying_once(env.kv)):
        token = await open_session(user, "password")
    assert await find_session(token) is not None
    with active_env(env, kv=dying_once(env.kv)):
        await close_session(token)
    assert await find_session(token) is None
    assert await audited() == ["signed out", "signed in", "account created"]


async def test_signing_out_of_a_session_that_is_over_is_no_error_and_no_news(env):
    token = await open_session(await make(), "password")
    await close_session(token)
    await close_session(token)
    assert await audited() == ["signed out", "signed in", "account created"]


async def test_a_session_has_a_longest_age_however_much_it_is_used(env):
    token = await open_session(await make(role=Role.ADMIN), "password")
    step = IDLE_MS[Role.ADMIN] - 1000
    used = 0
    while used < LONGEST_MS - step:
        env.clock.advance(step)
        used += step
        assert await find_session(token) is not None
    env.clock.advance(step * 2)
    assert await find_session(token) is None


async def test_a_session_ends_by_signing_out_by_a_new_password_by_disabling_and_everywhere(env):
    user = await make(password=PASSWORD)
    await make("root-one", Role.ADMIN)

    async def fresh() -> str:
        env.clock.advance(1)
        return await open_session(await get_user("ann"), "password")

    token = await fresh()
    await close_session(token)
    assert await find_session(token) is None
    token = await fresh()
    env.clock.advance(1)
    await set_password("ann", PASSWORD + "!", **WHY)
    assert await find_session(token) is None
    token = await fresh()
    await set_disabled("ann", disabled=True, **WHY)
    assert await find_session(token) is None
    await set_disabled("ann", disabled=False, **WHY)
    assert await find_session(token) is None, "what was ended does not come back"
    first, second = await fresh(), await fresh()
    await sign_out_everywhere(user.name)
    assert await find_session(first) is None and await find_session(second) is None
    assert await find_session(await fresh()) is not None


async def test_a_session_that_begins_in_the_millisecond_of_a_sign_out_is_good(env):
    await make()
    before = await open_session(await get_user("ann"), "password")
    user = await sign_out_everywhere("ann")
    after = await open_session(user, "password")
    assert await find_session(before) is None and await find_session(after) is not None


@pytest.mark.parametrize("token", ["", "x", "a" * 5000, "\x00", "é"])
async def test_a_foreign_session_token_finds_nothing(env, token):
    assert await find_session(token) is None


# Tokens.


async def test_only_the_hash_of_a_token_is_stored(env):
    await make()
    made = await create_token("ann", "laptop", ["read", "submit"], by="user:ann")
    assert made.secret.startswith("vsk_")
    assert made.secret.encode() not in await stored(env)
    found = await find_token(made.secret)
    assert found is not None and (found[0].scopes, found[1].name) == (("read", "submit"), "ann")


async def test_a_token_expires(env):
    await make()
    made = await create_token("ann", "laptop", ["read"], by="user:ann", days=2)
    env.clock.advance(2 * DAY_MS - 1)
    assert await find_token(made.secret) is not None
    env.clock.advance(1)
    assert await find_token(made.secret) is None
    assert [one.id for one in await list_tokens("ann")] == [made.token.id], "its owner still sees it"


async def test_a_revoked_token_is_worthless_at_once(env):
    await make()
    kept, gone = [await create_token("ann", name, ["read"], by="user:ann") for name in ("a", "b")]
    await revoke_own_token("ann", gone.token.id)
    assert await find_token(gone.secret) is None
    assert await find_token(kept.secret) is not None
    with pytest.raises(NotFound):
        await revoke_own_token("ann", gone.token.id)


@pytest.mark.parametrize("ending", ["disabling", "a new password", "signing out everywhere"])
async def test_tokens_end_with_the_trust_in_their_account_and_do_not_come_back(env, ending):
    await make("root-one", Role.ADMIN)
    await make()
    made = await create_token("ann", "laptop", ["read"], by="user:ann")
    assert await find_token(made.secret) is not None
    if ending == "disabling":
        await set_disabled("ann", disabled=True, **WHY)
        assert await find_token(made.secret) is None
        await set_disabled("ann", disabled=False, **WHY)
    elif ending == "a new password":
        await set_password("ann", "another long enough one", **WHY)
    else:
        await sign_out_everywhere("ann")
    assert await find_token(made.secret) is None
    assert await list_tokens("ann") == () and await list_all_tokens() == ()
    again = await create_token("ann", "laptop", ["read"], by="user:ann")
    assert await find_token(again.secret) is not None


async def test_a_demotion_ends_what_the_account_may_no_longer_hold_for_good(env):
    await make("root-one", Role.ADMIN)
    await make(role=Role.ADMIN)
    scopes = {"ci": ["read", "submit"], "desk": ["read", "review"], "all": ["read", "admin"]}
    made = {name: await create_token("ann", name, held, by="user:ann") for name, held in scopes.items()}
    await set_role("ann", Role.REVIEWER, **WHY)
    assert {one.name for one in await list_tokens("ann")} == {"ci", "desk"}
    await set_role("ann", Role.AUTHOR, **WHY)
    await set_role("ann", Role.ADMIN, **WHY)
    good = {name for name, token in made.items() if await find_token(token.secret) is not None}
    assert good == {"ci"} == {one.name for one in await list_all_tokens()}


async def plant_token(env, scopes: list[str] | None) -> str:
    """A token with more scopes than its account's role may hold; None is one that cannot be read."""
    made = await create_token("ann", "planted", ["read"], by="user:ann")
    key = next(key for key in [keys.token(one) for one in (await get_user("ann")).tokens])
    record = msgspec.json.encode(msgspec.structs.replace(made.token, scopes=tuple(scopes or ())))
    entry = await env.kv.get(key)
    await env.kv.commit([Put(key, b"{" if scopes is None else record, entry.version)])
    return made.secret


@pytest.mark.parametrize("scopes", [["read", "admin"], None], ids=["admin", "unreadable"])
async def test_a_token_that_a_powerless_account_made_does_not_come_to_power_with_it(env, scopes):
    await make()
    await plant_token(env, scopes)
    promoted = await set_role("ann", Role.ADMIN, **WHY)
    assert promoted.tokens == () and await list_all_tokens() == ()


async def test_a_scope_counts_only_as_far_as_the_role_at_every_use(env):
    await make()
    found = await find_token(await plant_token(env, ["read", "admin"]))
    assert found is not None
    token, user = found
    assert token.scopes_as(user.role) == {"read", "submit", "own"}
    assert token.scopes_as(Role.REVIEWER) == {"read", "submit", "own", "review"}


async def test_enabling_an_account_that_is_not_disabled_keeps_its_tokens(env):
    await make()
    made = await create_token("ann", "laptop", ["read"], by="user:ann")
    await set_disabled("ann", disabled=False, **WHY)
    assert await find_token(made.secret) is not None


async def test_when_a_token_was_used_is_known_to_the_hour_and_written_quietly(env):
    await make()
    made = await create_token("ann", "laptop", ["read"], by="user:ann")
    cursor = await env.kv.change_cursor()
    await find_token(made.secret)
    first = (await list_tokens("ann"))[0].last_used_at
    env.clock.advance(1000)
    await find_token(made.secret)
    assert first is not None and (await list_tokens("ann"))[0].last_used_at == first
    env.clock.advance(USED_EVERY_MS)
    await find_token(made.secret)
    assert (await list_tokens("ann"))[0].last_used_at == env.kv.now()
    assert (await env.kv.changes(keys.token.prefix, after=cursor)).items == ()


async def test_a_token_is_good_even_where_its_use_cannot_be_written(env):
    await make()
    made = await create_token("ann", "laptop", ["read"], by="user:ann")
    hooked = HookedKV(env.kv)
    hooked.failing = {"commit"}
    with active_env(env, kv=hooked):
        assert await find_token(made.secret) is not None
    assert (await list_tokens("ann"))[0].last_used_at is None


@pytest.mark.parametrize("secret", ["", "vsk_", "vsk_x", "Bearer", "vsk_" + "a" * 5000, "vsk_\x00", "vsk_é"])
async def test_a_foreign_token_finds_nothing(env, secret):
    assert await find_token(secret) is None


# The first admin.


async def test_E11_the_first_admin_is_made_by_a_link_that_works_once(env):
    link = await first_admin_link(env, "http://127.0.0.1:8080/")
    assert link is not None and link.startswith("http://127.0.0.1:8080/setup?token=")
    token = link.split("token=")[1]
    assert token.encode() not in await stored(env)
    user = await make_first_admin(token, "root-one", PASSWORD)
    assert user.role is Role.ADMIN
    with pytest.raises(NotFound):
        await make_first_admin(token, "root-two", PASSWORD)
    assert await first_admin_link(env, "http://127.0.0.1:8080") is None
    assert len(await find_admins()) == 1


async def test_a_link_expires_and_a_newer_one_replaces_it(env):
    old = await new_setup_token()
    new = await new_setup_token()
    with pytest.raises(NotFound):
        await check_setup(str(old))
    await check_setup(str(new))
    env.clock.advance(LINK_MS + 1)
    with pytest.raises(NotFound):
        await check_setup(str(new))


async def test_a_link_is_worthless_once_there_is_an_admin(env):
    token = str(await new_setup_token())
    await make("root-one", Role.ADMIN)
    with pytest.raises(NotFound):
        await make_first_admin(token, "root-two", PASSWORD)


async def test_two_who_use_the_link_at_once_make_one_admin(env):
    token = str(await new_setup_token())
    done = await asyncio.gather(
        make_first_admin(token, "a", PASSWORD), make_first_admin(token, "b", PASSWORD), return_exceptions=True
    )
    assert len(await find_admins()) == 1, done


async def test_a_weak_password_does_not_use_up_the_link(env):
    token = str(await new_setup_token())
    with pytest.raises(InvalidInput):
        await make_first_admin(token, "root-one", "short")
    await make_first_admin(token, "root-one", PASSWORD)


@pytest.mark.parametrize("token", ["", "x", "\x00", "a" * 5000])
async def test_no_other_token_makes_an_admin(env, token):
    await new_setup_token()
    with pytest.raises(NotFound):
        await make_first_admin(token, "root-one", PASSWORD)
    assert await find_admins() == []


# GitHub.

REPO = normalise("https://github.com/Octo/tools")


async def test_a_github_account_is_known_by_its_number_not_by_its_login(env):
    first = await account_of_github("1", "Octo")
    assert (first.name, first.role) == ("octo", Role.AUTHOR)
    renamed = await account_of_github("1", "octopus")
    assert renamed.name == "octo"


async def test_an_account_that_is_there_is_never_taken_over_by_a_login(env):
    await make("octo", Role.ADMIN)
    other = await account_of_github("7", "octo")
    assert (other.name, other.role) == ("octo-7", Role.AUTHOR)


async def test_a_login_that_is_no_name_of_ours_gets_one(env):
    assert (await account_of_github("9", "Big_Corp--x")).name == "github-9"


async def test_a_disabled_account_does_not_come_back_by_github(env):
    await make("root-one", Role.ADMIN)
    await account_of_github("1", "octo")
    await set_disabled("octo", disabled=True, **WHY)
    with pytest.raises(NotPermitted):
        await account_of_github("1", "octo")


async def test_signing_in_proves_control_of_the_owners_repositories_for_a_while(env):
    await account_of_github("1", "octo")
    assert await controls("octo", REPO)
    assert not await controls("octo", normalise("https://gitlab.com/octo/tools"))
    assert not await controls("octo", normalise("https://github.com/other/tools"))
    env.clock.advance(PROOF_MS + 1)
    assert not await controls("octo", REPO)


GHE = "https://ghe.example.org"


async def test_a_number_is_worth_something_only_to_the_server_that_gave_it_out(env):
    await account_of_github("1", "octo")
    with active_env(env, settings=msgspec.structs.replace(env.settings, github_url=GHE)):
        assert (await account_of_github("1", "somebody")).name == "somebody"
        assert await controls("somebody", normalise(f"{GHE}/somebody/tools"))
        assert not await controls("somebody", normalise("https://github.com/somebody/tools"))
    assert (await account_of_github("1", "octo")).name == "octo"


async def test_a_local_account_of_the_same_name_proves_nothing(env):
    await make("octo")
    assert not await controls("octo", REPO)


# Old and broken records.


async def test_a_record_that_cannot_be_read_is_counted_and_hides_no_other(env):
    await make()
    await env.kv.put(keys.user("bad"), b"{")
    page = await list_users()
    assert [user.name for user in page.items] == ["ann"] and page.skipped == 1


async def test_a_change_keeps_what_others_changed_meanwhile(env):
    await make()
    await asyncio.gather(
        *(create_token("ann", f"t{number}", ["read"], by="user:ann") for number in range(5)),
        set_role("ann", Role.REVIEWER, **WHY),
    )
    user = await get_user("ann")
    assert (len(user.tokens), user.role) == (5, Role.REVIEWER)
