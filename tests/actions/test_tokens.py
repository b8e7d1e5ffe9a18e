"""Tokens: whose they are, what they may hold, and that one made with a token can do no more and lives no longer."""

from typing import Any

import pytest

from tests.support.acting import MadeToken, create_token, principal_for
from tests.support.entry_points import EntryPoints
from tests.support.envs import ENGINES, active_env, open_test_env
from tests.support.faults import dying_once
from tests.support.manual_clock import ManualClock
from tests.support.people import browser, make_account
from vskill_client.wire.base import NoParameters, iso_time
from vskill_core.errors import InvalidInput, NotFound, NotPermitted, NotSignedIn
from vskill_platform.actions.action import Action
from vskill_platform.actions.people.tokens import (
    CREATE_OWN_TOKEN,
    CREATE_TOKEN_FOR,
    LIST_ALL_TOKENS,
    LIST_OWN_TOKENS,
    MOST_TOKENS,
    REVOKE_OWN_TOKEN,
    REVOKE_TOKEN_OF,
    CreateOwnToken,
    CreateTokenFor,
    ListAllTokens,
    RevokeOwnToken,
    RevokeTokenOf,
)
from vskill_platform.actions.principal import ANYBODY, OPERATOR, Principal
from vskill_platform.actions.table import ACTIONS
from vskill_platform.domain.people.token import TokenScope
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.people.credentials import find_token, list_tokens
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

ADA, ANN, BOB = Principal("ada", Role.ADMIN), Principal("ann", Role.AUTHOR), Principal("bob", Role.AUTHOR)
READ = (TokenScope.READ,)
#: What an account does with its own tokens, and the scope that a token needs for it.
OWN: dict[str, tuple[Any, str]] = {
    LIST_OWN_TOKENS.name: (NoParameters(), "read"),
    CREATE_OWN_TOKEN.name: (CreateOwnToken(name="ci", scopes=READ), "own"),
    REVOKE_OWN_TOKEN.name: (RevokeOwnToken(token_id="none"), "own"),
}
#: What only admins do.
ALL: dict[str, Any] = {
    LIST_ALL_TOKENS.name: ListAllTokens(),
    CREATE_TOKEN_FOR.name: CreateTokenFor(account="bob", name="ci", scopes=READ),
    REVOKE_TOKEN_OF.name: RevokeTokenOf(account="bob", token_id="none", reason="leaked"),
}


@pytest.fixture(params=ENGINES)
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path, clock=ManualClock()) as opened:
        for name, role in (("ada", Role.ADMIN), ("ann", Role.AUTHOR), ("bob", Role.AUTHOR)):
            await make_account(opened, name, role)
        yield opened


def by_name(action: Action) -> str:
    return action.name


def holding(made: MadeToken, role: Role) -> Principal:
    """Whoever shows this token."""
    return Principal(made.token.account, role, made.token.scopes_as(role), made.token.acting)


@pytest.mark.parametrize("action", [one for one in ACTIONS if one.name in OWN], ids=by_name)
async def test_ones_own_tokens_need_an_account_and_the_scope(env, action):
    asked, scope = OWN[action.name]
    with pytest.raises(NotSignedIn):
        await action(env, ANYBODY, asked)
    with pytest.raises(InvalidInput, match="The operator has no account"):
        await action(env, OPERATOR, asked)
    with pytest.raises(NotPermitted, match=f"'{scope}'"):
        await action(env, Principal("ann", Role.AUTHOR, frozenset()), asked)


@pytest.mark.parametrize("action", [one for one in ACTIONS if one.name in ALL], ids=by_name)
async def test_only_admins_and_the_operator_have_everybodys_tokens(env, action):
    with pytest.raises(NotSignedIn):
        await action(env, ANYBODY, ALL[action.name])
    for role in (Role.AUTHOR, Role.REVIEWER):
        with pytest.raises(NotPermitted):
            await action(env, Principal("bob", role), ALL[action.name])
    with pytest.raises(NotPermitted, match="'admin'"):
        await action(
            env, Principal("ada", Role.ADMIN, frozenset({"read", "own", "review"})), ALL[action.name]
        )
    assert await list_tokens("bob") == ()
    for may in (ADA, OPERATOR):
        if action is REVOKE_TOKEN_OF:
            with pytest.raises(NotFound):
                await action(env, may, ALL[action.name])
        else:
            await action(env, may, ALL[action.name])


async def test_a_token_is_created_once_shown_listed_and_revoked(env):
    made = await CREATE_OWN_TOKEN(env, ANN, CreateOwnToken(name=" laptop ", days=2))
    assert made.token.startswith("vsk_") and made.token not in repr(made)
    assert (made.details.name, made.details.scopes) == ("laptop", ("read", "submit"))
    assert made.details.expires_at == iso_time(env.kv.now() + 2 * 86_400_000)
    assert (await LIST_OWN_TOKENS(env, ANN, NoParameters())).tokens == (made.details,)
    (entry, *_) = (await list_audit()).items
    assert (entry.action, entry.by, entry.target) == ("token created", "user:ann", "ann")
    assert entry.details == {"token": made.details.id, "name": "laptop", "scopes": "read submit"}
    gone = await REVOKE_OWN_TOKEN(env, ANN, RevokeOwnToken(token_id=made.details.id))
    assert gone.revoked and await find_token(made.token) is None
    (entry, *_) = (await list_audit()).items
    assert (entry.action, entry.by, entry.details["token"]) == ("token revoked", "user:ann", made.details.id)


async def test_nobody_revokes_the_token_of_another(env):
    made = await create_token("ann", "laptop", ["read"], by="user:ann")
    with pytest.raises(NotFound):
        await REVOKE_OWN_TOKEN(env, BOB, RevokeOwnToken(token_id=made.token.id))
    assert await find_token(made.secret) is not None
    request = RevokeTokenOf(account="ann", token_id=made.token.id, reason="leaked")
    assert (await REVOKE_TOKEN_OF(env, ADA, request)).details.name == "laptop"
    assert await find_token(made.secret) is None
    (entry, *_) = (await list_audit()).items
    assert (entry.action, entry.by, entry.target, entry.reason) == (
        "token revoked",
        "admin:ada",
        "ann",
        "leaked",
    )


async def test_a_token_for_another_account_is_that_accounts_and_the_audit_names_the_admin(env):
    made = await CREATE_TOKEN_FOR(env, ADA, CreateTokenFor(account="bob", name="ci", scopes=READ))
    found = await find_token(made.token)
    assert found is not None and found[1].name == "bob"
    (entry, *_) = (await list_audit()).items
    assert (entry.action, entry.by, entry.target) == ("token created", "admin:ada", "bob")
    listed = await LIST_ALL_TOKENS(env, ADA, ListAllTokens(account="bob"))
    assert [(one.account, one.details.name) for one in listed.tokens] == [("bob", "ci")]
    assert (await LIST_ALL_TOKENS(env, ADA, ListAllTokens(account="ann"))).tokens == ()
    with pytest.raises(NotFound, match="no account 'nobody'"):
        await CREATE_TOKEN_FOR(env, ADA, CreateTokenFor(account="nobody", name="ci"))


@pytest.mark.parametrize(
    ("role", "refused"),
    [(Role.AUTHOR, ("review", "admin")), (Role.REVIEWER, ("admin",)), (Role.ADMIN, ())],
)
async def test_a_token_is_made_only_with_scopes_that_the_role_may_hold(env, role, refused):
    await make_account(env, "rob", role)
    for scope in TokenScope:
        asked = CreateTokenFor(account="rob", name="x", scopes=(TokenScope.READ, scope))
        if scope.value in refused:
            with pytest.raises(NotPermitted, match=f"cannot have the scope '{scope.value}'"):
                await CREATE_TOKEN_FOR(env, OPERATOR, asked)
        else:
            await CREATE_TOKEN_FOR(env, OPERATOR, asked)
    assert len(await list_tokens("rob")) == 5 - len(refused)


async def test_an_account_has_a_bounded_number_of_tokens(env):
    first, *_ = [
        await create_token("ann", f"t{number}", ["read"], by="user:ann") for number in range(MOST_TOKENS)
    ]
    with pytest.raises(InvalidInput, match=f"{MOST_TOKENS} tokens already") as caught:
        await CREATE_OWN_TOKEN(env, ANN, CreateOwnToken(name="c"))
    assert caught.value.fix == "revoke one first" and len(await list_tokens("ann")) == MOST_TOKENS
    await REVOKE_OWN_TOKEN(env, ANN, RevokeOwnToken(token_id=first.token.id))
    await CREATE_OWN_TOKEN(env, ANN, CreateOwnToken(name="c"))


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"scopes": ()}, "scopes"),
        ({"scopes": ("root",)}, "scopes[0]"),
        ({"name": " "}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "x" * 81}, "name"),
        ({"days": 0}, "days"),
        ({"days": 400}, "days"),
        ({"namespace": "acme/tools"}, "namespace"),
        ({"namespace": "two words"}, "namespace"),
        ({"namespace": ""}, "namespace"),
    ],
)
async def test_a_token_that_makes_no_sense_is_refused_with_the_field(env, asked, field):
    with pytest.raises(InvalidInput) as caught:
        await CREATE_OWN_TOKEN(env, ANN, CreateOwnToken(**{"name": "x", **asked}))
    assert caught.value.field == field and caught.value.fix


@pytest.mark.parametrize("action", [CREATE_OWN_TOKEN, CREATE_TOKEN_FOR], ids=by_name)
async def test_a_token_made_with_a_token_can_do_no_more_and_lives_no_longer(env, action):
    scopes = ["own"] if action is CREATE_OWN_TOKEN else ["admin"]
    weak = await create_token("ada", "weak", scopes, by="user:ada", days=2)
    given = {"account": "ada"} if action is CREATE_TOKEN_FOR else {}
    child = await action(
        env, holding(weak, Role.ADMIN), action.request(name="child", scopes=READ, days=300, **given)
    )
    assert child.details.expires_at == iso_time(weak.token.expires_at)
    if action is CREATE_OWN_TOKEN:
        more = CreateOwnToken(name="more", scopes=(TokenScope.READ, TokenScope.ADMIN))
        with pytest.raises(NotPermitted, match="cannot make one with more"):
            await action(env, holding(weak, Role.ADMIN), more)
    assert principal_for("user:ada").actor in {entry.by for entry in (await list_audit()).items}


async def test_a_token_may_be_bound_to_one_namespace_which_lists_and_audit_show(env):
    made = await CREATE_OWN_TOKEN(env, ANN, CreateOwnToken(name="ci", scopes=READ, namespace=" acme "))
    assert made.details.namespace == "acme"
    assert [one.namespace for one in (await LIST_OWN_TOKENS(env, ANN, NoParameters())).tokens] == ["acme"]
    (entry, *_) = (await list_audit()).items
    assert entry.details["namespace"] == "acme"
    free = await CREATE_OWN_TOKEN(env, ANN, CreateOwnToken(name="ci", scopes=READ))
    assert free.details.namespace is None
    found = await find_token(made.token)
    assert found is not None and found[0].namespace == "acme"


@pytest.mark.parametrize("scope", [TokenScope.REVIEW, TokenScope.ADMIN])
async def test_a_token_of_one_namespace_neither_reviews_nor_administers(env, scope):
    asked = CreateOwnToken(name="ci", scopes=(TokenScope.READ, scope), namespace="acme")
    with pytest.raises(NotPermitted, match="one namespace") as caught:
        await CREATE_OWN_TOKEN(env, ADA, asked)
    assert caught.value.details["field"] == "scopes"


async def test_a_token_of_one_namespace_makes_none_of_another(env):
    own = (TokenScope.READ, TokenScope.OWN)
    bound = await CREATE_OWN_TOKEN(env, ANN, CreateOwnToken(name="a", scopes=own, namespace="acme"))
    found = await find_token(bound.token)
    assert found is not None
    holder = holding(MadeToken(bound.token, found[0]), Role.AUTHOR)
    child = await CREATE_OWN_TOKEN(env, holder, CreateOwnToken(name="b", scopes=READ))
    assert child.details.namespace == "acme", "it is bound like the one that made it"
    with pytest.raises(NotPermitted, match="acme") as caught:
        await CREATE_OWN_TOKEN(env, holder, CreateOwnToken(name="c", scopes=READ, namespace="other"))
    assert caught.value.details["field"] == "namespace"


async def test_an_unknown_outcome_makes_one_token(env):
    with active_env(env, kv=dying_once(env.kv)) as hooked:
        await CREATE_OWN_TOKEN(hooked, ANN, CreateOwnToken(name="laptop"))
    assert len(await list_tokens("ann")) == 1


# Entry points.


async def test_form_api_and_commands_create_the_same_token(tmp_path, monkeypatch):
    async def prepare(_env) -> dict[str, str]:
        return {}

    doors = EntryPoints(tmp_path, monkeypatch, prepare, Role.AUTHOR)
    by_form = await doors.by_form(
        "/account/tokens", status=201, name="ci", scopes="own", days="1", namespace="acme"
    )
    assert sum('"token created"' in one for one in by_form) == 1
    assert sum('["token:"' in one for one in by_form) == 1
    assert by_form == await doors.by_json(
        "/api/v1/tokens", name="ci", scopes=["own"], days=1, namespace="acme"
    )
    words = (
        "account",
        "create-token",
        "--name",
        "ci",
        "--scope",
        "own",
        "--days",
        "1",
        "--namespace",
        "acme",
    )
    assert by_form == await doors.by_command(*words)
    assert by_form == await doors.by_remote_command(*words)


async def test_form_api_and_commands_revoke_alike(tmp_path, monkeypatch):
    async def prepare(_env) -> dict[str, str]:
        made = await create_token("rob", "old", ["read"], by="system")
        return {"token_id": made.token.id}

    doors = EntryPoints(tmp_path, monkeypatch, prepare, Role.ADMIN)
    by_form = await doors.by_form("/account/tokens/revoke", token_id="{token_id}")
    assert sum('"token revoked"' in one for one in by_form) == 1
    assert by_form == await doors.by_json("/api/v1/tokens/{token_id}", method="DELETE")
    assert by_form == await doors.by_command("account", "revoke-token", "{token_id}")
    assert by_form == await doors.by_remote_command("account", "revoke-token", "{token_id}")


async def test_an_admin_revokes_alike_at_every_entry_point(tmp_path, monkeypatch):
    async def prepare(env) -> dict[str, str]:
        await make_account(env, "ann", Role.AUTHOR)
        made = await create_token("ann", "old", ["read"], by="system")
        return {"token_id": made.token.id}

    doors = EntryPoints(tmp_path, monkeypatch, prepare, Role.ADMIN)
    by_form = await doors.by_form(
        "/admin/tokens/revoke", account="ann", token_id="{token_id}", reason="leaked"
    )
    assert sum('"token revoked"' in one for one in by_form) == 1
    assert by_form == await doors.by_json("/api/v1/admin/tokens/ann/{token_id}/revoke", reason="leaked")
    words = ("token", "revoke", "ann", "{token_id}", "--reason", "leaked")
    assert by_form == await doors.by_command(*words)
    assert by_form == await doors.by_remote_command(*words)


async def test_a_token_for_an_account_is_made_alike_by_api_and_commands(tmp_path, monkeypatch):
    async def prepare(env) -> dict[str, str]:
        await make_account(env, "bot", Role.AUTHOR)
        return {}

    doors = EntryPoints(tmp_path, monkeypatch, prepare, Role.ADMIN)
    by_json = await doors.by_json("/api/v1/admin/tokens/bot", name="ci", days=1)
    words = ("token", "create", "bot", "--name", "ci", "--days", "1")
    assert by_json == await doors.by_command(*words)
    assert by_json == await doors.by_remote_command(*words)


async def test_the_answers_of_the_api_stay_as_clients_know_them(tmp_path):
    async with open_test_env("memory", tmp_path, rate_limits="off") as env:
        await make_account(env, "ann", Role.AUTHOR)
        first = await create_token("ann", "laptop", ["own"], by="system")
        headers = {"authorization": f"Bearer {first.secret}"}
        async with browser(create_app(env)) as client:
            made = await client.post(
                "/api/v1/tokens", json={"name": "ci", "scopes": ["read"]}, headers=headers
            )
            assert made.status_code == 201
            assert list(made.json()) == ["token", "details"]
            assert list(made.json()["details"]) == [
                *("id", "name", "scopes", "createdAt", "expiresAt", "lastUsedAt", "namespace")
            ]
            listed = (await client.get("/api/v1/tokens", headers=headers)).json()
            assert [one["name"] for one in listed["tokens"]] == ["ci", "laptop"]
            gone = await client.delete(f"/api/v1/tokens/{made.json()['details']['id']}", headers=headers)
            assert (gone.status_code, gone.json()) == (
                200,
                {"id": made.json()["details"]["id"], "revoked": True},
            )
