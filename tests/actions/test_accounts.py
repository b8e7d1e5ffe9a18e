"""Accounts: who may manage them, that an admin is always left, and that every entry point leaves the same records."""

import asyncio
from typing import Any

import pytest

from tests.support.acting import principal_for, set_disabled, set_role
from tests.support.entry_points import EntryPoints
from tests.support.envs import ENGINES, active_env, open_test_env
from tests.support.faults import dying_once
from tests.support.manual_clock import ManualClock
from tests.support.people import PASSWORD, make_account
from vskill_client.wire.base import NoParameters
from vskill_core.errors import (
    InvalidInput,
    NotFound,
    NotPermitted,
    NotSignedIn,
    RateLimited,
)
from vskill_platform.actions.action import Action
from vskill_platform.actions.people.account import CHANGE_PASSWORD, SIGN_OUT_EVERYWHERE, ChangeOwnPassword
from vskill_platform.actions.people.accounts import (
    CHANGE_ROLE,
    CREATE_ACCOUNT,
    DISABLE_ACCOUNT,
    ENABLE_ACCOUNT,
    LIST_ACCOUNTS,
    RESET_PASSWORD,
    SIGN_OUT_ACCOUNT,
    ChangeAccount,
    ChangeAccountRole,
    CreateAccount,
    ListAccounts,
    ResetPassword,
)
from vskill_platform.actions.principal import ANYBODY, OPERATOR, Principal
from vskill_platform.actions.table import ACTIONS
from vskill_platform.store.people.accounts import Role, find_admins, get_user
from vskill_platform.store.people.attempts import MOST_PAIR
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.people.credentials import find_session, open_session, sign_in

pytestmark = pytest.mark.anyio

ADA = Principal("ada", Role.ADMIN)
#: Every action, with what it is asked for.
ASKED: dict[str, Any] = {
    LIST_ACCOUNTS.name: ListAccounts(),
    CREATE_ACCOUNT.name: CreateAccount(name="new", role=Role.AUTHOR, reason="joined"),
    CHANGE_ROLE.name: ChangeAccountRole(name="ann", role=Role.REVIEWER, reason="knows the rules"),
    DISABLE_ACCOUNT.name: ChangeAccount(name="ann", reason="on leave"),
    ENABLE_ACCOUNT.name: ChangeAccount(name="ann", reason="back"),
    RESET_PASSWORD.name: ResetPassword(name="ann", reason="forgot it"),
    SIGN_OUT_ACCOUNT.name: ChangeAccount(name="ann", reason="lost a laptop"),
}
AUDITED = {
    CREATE_ACCOUNT.name: "account created",
    CHANGE_ROLE.name: "account role",
    DISABLE_ACCOUNT.name: "account disabled",
    ENABLE_ACCOUNT.name: "account enabled",
    RESET_PASSWORD.name: "account password",
    SIGN_OUT_ACCOUNT.name: "signed out everywhere",
}
CHANGES = [one for one in ACTIONS if one.name in AUDITED]


@pytest.fixture(params=ENGINES)
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path, clock=ManualClock()) as opened:
        await make_account(opened, "ada", Role.ADMIN)
        await make_account(opened, "ann", Role.AUTHOR)
        yield opened


def by_name(action: Action) -> str:
    return action.name


@pytest.mark.parametrize("action", [one for one in ACTIONS if one.name in ASKED], ids=by_name)
async def test_only_admins_and_the_operator_manage_accounts(env, action):
    before = await get_user("ann")
    with pytest.raises(NotSignedIn):
        await action(env, ANYBODY, ASKED[action.name])
    for role in (Role.AUTHOR, Role.REVIEWER):
        with pytest.raises(NotPermitted):
            await action(env, Principal("ann", role), ASKED[action.name])
    weak = Principal("ada", Role.REVIEWER, frozenset({"read", "own", "review"}))
    with pytest.raises(NotPermitted, match="'admin'"):
        await action(env, weak, ASKED[action.name])
    assert await get_user("ann") == before
    await action(env, ADA, ASKED[action.name])
    if action is not CREATE_ACCOUNT:
        await action(env, OPERATOR, ASKED[action.name])


@pytest.mark.parametrize("action", CHANGES, ids=by_name)
async def test_every_change_is_audited_with_who_and_why(env, action):
    await action(env, ADA, ASKED[action.name])
    entry = (await list_audit()).items[0]
    asked = ASKED[action.name]
    assert (entry.action, entry.by, entry.target) == (AUDITED[action.name], "admin:ada", asked.name)
    assert entry.reason == asked.reason


@pytest.mark.parametrize("action", [one for one in CHANGES if one is not CREATE_ACCOUNT], ids=by_name)
async def test_what_is_changed_must_exist_and_have_a_reason(env, action):
    given = {"role": Role.AUTHOR} if action is CHANGE_ROLE else {}
    with pytest.raises(NotFound, match="no account 'nobody'"):
        await action(env, ADA, action.request(name="nobody", reason="x", **given))
    with pytest.raises(InvalidInput) as caught:
        await action(env, ADA, action.request(name="ann", reason=" ", **given))
    assert caught.value.field == "reason"


async def test_the_operator_makes_the_first_admin(tmp_path):
    async with open_test_env("memory", tmp_path) as env:
        made = await CREATE_ACCOUNT(
            env, OPERATOR, CreateAccount(name="root-one", role=Role.ADMIN, reason="first admin")
        )
        assert [user.name for user, _ in await find_admins()] == ["root-one"]
        assert (await list_audit()).items[0].by == "admin:command line"
        assert made.password is not None and made.password not in repr(made)


async def test_a_generated_password_is_in_the_answer_and_works(env):
    made = await CREATE_ACCOUNT(env, ADA, CreateAccount(name="Rita", role=Role.REVIEWER, reason="joined us"))
    assert made.password is not None and made.account.name == "rita"
    assert (await sign_in("rita", made.password, "192.0.2.1")).role is Role.REVIEWER
    again = await RESET_PASSWORD(env, ADA, ResetPassword(name="rita", reason="forgot it"))
    assert again.password is not None
    with pytest.raises(NotSignedIn):
        await sign_in("rita", made.password, "192.0.2.1")
    await sign_in("rita", again.password, "192.0.2.1")


async def test_a_given_password_is_taken_as_it_is_and_never_answered(env):
    given = "  spaces around it count  "
    request = CreateAccount(name="rita", role=Role.AUTHOR, reason="joined", password=given)
    assert given not in repr(request)
    assert (await CREATE_ACCOUNT(env, ADA, request)).password is None
    with pytest.raises(NotSignedIn):
        await sign_in("rita", given.strip(), "192.0.2.1")
    await sign_in("rita", given, "192.0.2.1")


@pytest.mark.parametrize("password", ["", "short", "aaaaaaaaaaaaaaaa", "x" * 201])
async def test_a_weak_password_is_refused(env, password):
    with pytest.raises(InvalidInput) as caught:
        await CREATE_ACCOUNT(
            env, ADA, CreateAccount(name="rita", role=Role.AUTHOR, reason="x", password=password)
        )
    assert caught.value.field == "password" and caught.value.fix
    with pytest.raises(InvalidInput):
        await RESET_PASSWORD(env, ADA, ResetPassword(name="ann", reason="x", password=password))


async def test_nobody_locks_themselves_out(env):
    await make_account(env, "eve", Role.ADMIN)
    with pytest.raises(NotPermitted, match="cannot lock out your own account"):
        await DISABLE_ACCOUNT(env, ADA, ChangeAccount(name="ada", reason="oops"))
    assert not (await get_user("ada")).disabled


async def test_the_last_admin_can_neither_be_disabled_nor_demoted(env):
    why = {"by": "system", "reason": "for a test"}
    with pytest.raises(NotPermitted, match="only admin"):
        await set_disabled("ada", disabled=True, **why)
    with pytest.raises(NotPermitted, match="only admin"):
        await set_role("ada", Role.AUTHOR, **why)
    await make_account(env, "eve", Role.ADMIN)
    await set_role("ada", Role.AUTHOR, **why)
    with pytest.raises(NotPermitted, match="only admin"):
        await set_disabled("eve", disabled=True, **why)


async def test_two_admins_that_disable_each_other_at_once_do_not_both_succeed(env):
    await make_account(env, "eve", Role.ADMIN)
    done = await asyncio.gather(
        set_disabled("ada", disabled=True, by="admin:eve", reason="x"),
        set_disabled("eve", disabled=True, by="admin:ada", reason="x"),
        return_exceptions=True,
    )
    assert sum(isinstance(one, NotPermitted) for one in done) == 1
    assert sum(not user.disabled for user, _ in await find_admins()) == 1


async def test_an_unknown_outcome_changes_an_account_once(env):
    with active_env(env, kv=dying_once(env.kv)):
        assert (await set_role("ann", Role.REVIEWER, by="admin:ada", reason="x")).role is Role.REVIEWER
    actions = [entry.action for entry in (await list_audit()).items]
    assert actions.count("account role") == 1


async def test_accounts_are_listed_page_by_page_without_their_hashes(env):
    await make_account(env, "rob", Role.REVIEWER, PASSWORD)
    first = await LIST_ACCOUNTS(env, ADA, ListAccounts(limit=2))
    rest = await LIST_ACCOUNTS(env, ADA, ListAccounts(after=first.after, limit=2))
    assert [one.name for one in (*first.items, *rest.items)] == ["ada", "ann", "rob"]
    assert [one.has_password for one in (*first.items, *rest.items)] == [False, False, True]
    assert rest.after is None and "argon2" not in repr(rest)


# One's own account.


async def test_a_password_is_changed_by_whoever_knows_it_and_everything_else_ends(env):
    await make_account(env, "rob", Role.AUTHOR, PASSWORD)
    session = await open_session(await get_user("rob"), "password")
    rob, new = principal_for("user:rob"), "another sentence of mine"
    with pytest.raises(InvalidInput, match="present password is wrong"):
        await CHANGE_PASSWORD(env, rob, ChangeOwnPassword(old="wrong", password=new))
    with pytest.raises(InvalidInput, match="12 to 200"):
        await CHANGE_PASSWORD(env, rob, ChangeOwnPassword(old=PASSWORD, password="short"))
    assert await find_session(session) is not None
    assert (await CHANGE_PASSWORD(env, rob, ChangeOwnPassword(old=PASSWORD, password=new))).signed_out
    assert await find_session(session) is None
    await sign_in("rob", new, "192.0.2.1")
    entry = next(one for one in (await list_audit()).items if one.action == "account password")
    assert (entry.by, entry.target, entry.reason) == ("user:rob", "rob", "changed by its owner")
    assert new not in repr(ChangeOwnPassword(old=PASSWORD, password=new))


async def test_guesses_of_the_present_password_are_limited(env):
    for _ in range(MOST_PAIR):
        with pytest.raises(InvalidInput, match="without a password"):
            await CHANGE_PASSWORD(
                env, principal_for("user:ann"), ChangeOwnPassword(old="x", password=PASSWORD)
            )
    with pytest.raises(RateLimited):
        await CHANGE_PASSWORD(env, principal_for("user:ann"), ChangeOwnPassword(old="x", password=PASSWORD))


@pytest.mark.parametrize(
    ("action", "asked", "scope"),
    [
        (CHANGE_PASSWORD, ChangeOwnPassword(old="x", password=PASSWORD), "own"),
        (SIGN_OUT_EVERYWHERE, NoParameters(), "submit"),
    ],
    ids=["password", "sign out"],
)
async def test_ones_own_account_needs_an_account_and_the_scope(env, action, asked, scope):
    with pytest.raises(NotSignedIn):
        await action(env, ANYBODY, asked)
    with pytest.raises(InvalidInput, match="The operator has no account"):
        await action(env, OPERATOR, asked)
    with pytest.raises(NotPermitted, match=f"'{scope}'"):
        await action(env, Principal("ann", Role.AUTHOR, frozenset({"read"})), asked)


# Entry points.

FORM = "/admin/accounts/ann/{verb}"
JSON = "/api/v1/admin/accounts/ann/{verb}"


@pytest.mark.parametrize(
    ("verb", "fields", "form_status"),
    [
        ("role", {"role": "reviewer"}, 303),
        ("disable", {}, 303),
        ("enable", {}, 303),
        ("password", {}, 201),
        ("sign-out", {}, 303),
    ],
)
async def test_form_api_and_commands_leave_the_same_records(tmp_path, monkeypatch, verb, fields, form_status):
    async def prepare(env) -> dict[str, str]:
        await make_account(env, "ann", Role.AUTHOR)
        return {}

    doors = EntryPoints(tmp_path, monkeypatch, prepare, Role.ADMIN)
    by_form = await doors.by_form(
        FORM.format(verb=verb), status=form_status, reason="asked", confirm="yes", **fields
    )
    assert sum('"audit:"' in one for one in by_form) == 1
    assert by_form == await doors.by_json(JSON.format(verb=verb), reason="asked", **fields)
    words = ("admin", verb, "ann", *fields.values(), "--reason", "asked")
    generates = ("--generate",) if verb == "password" else ()
    assert by_form == await doors.by_command(*words, *generates)
    assert by_form == await doors.by_remote_command(*words, *generates)


async def test_an_account_is_created_alike_at_every_entry_point(tmp_path, monkeypatch):
    async def prepare(_env) -> dict[str, str]:
        return {}

    doors = EntryPoints(tmp_path, monkeypatch, prepare, Role.ADMIN)
    given = {"name": "rita", "role": "reviewer", "reason": "joined us"}
    by_form = await doors.by_form("/admin/accounts", status=201, **given)
    assert any('"rita"' in one and '"a hash"' in one for one in by_form)
    assert by_form == await doors.by_json("/api/v1/admin/accounts", **given)
    words = ("admin", "create", "rita", "--role", "reviewer", "--reason", "joined us")
    assert by_form == await doors.by_command(*words, "--generate")
    assert by_form == await doors.by_remote_command(*words, typed=f"{PASSWORD}\n{PASSWORD}\n")


async def test_a_password_is_changed_and_everything_signed_out_alike_at_every_entry_point(
    tmp_path, monkeypatch
):
    async def prepare(env) -> dict[str, str]:
        await set_first_password(env)
        return {}

    doors = EntryPoints(tmp_path, monkeypatch, prepare, Role.AUTHOR)
    new = "another sentence of mine"
    by_form = await doors.by_form("/account/password", old=PASSWORD, password=new, again=new)
    assert by_form == await doors.by_json("/api/v1/account/password", old=PASSWORD, password=new)
    typed = f"{PASSWORD}\n{new}\n{new}\n"
    assert by_form == await doors.by_command("account", "password", typed=typed)
    assert by_form == await doors.by_remote_command("account", "password", typed=typed)


async def test_signing_out_everywhere_leaves_the_same_records(tmp_path, monkeypatch):
    async def prepare(_env) -> dict[str, str]:
        return {}

    doors = EntryPoints(tmp_path, monkeypatch, prepare, Role.AUTHOR)
    by_form = await doors.by_form("/account/sign-out-all")
    assert by_form == await doors.by_json("/api/v1/auth/sign-out-all", method="DELETE")
    assert by_form == await doors.by_command("account", "sign-out", "--yes")
    assert by_form == await doors.by_remote_command("account", "sign-out", "--yes")


async def set_first_password(env) -> None:
    request = ResetPassword(name="rob", password=PASSWORD, reason="first")
    await RESET_PASSWORD(env, OPERATOR, request)
