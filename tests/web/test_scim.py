"""SCIM 2.0 as the directories of companies speak it: which account a person gets, in which dialects it is changed, what
ends at once when somebody leaves, and what no directory may touch. `test_scim_tester.py` runs a checker of others."""

from collections.abc import Iterable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import msgspec
import pytest

from tests.support.acting import create_token
from tests.support.counting_kv import CountingKV
from tests.support.envs import active_env
from tests.support.namespaces import manage
from tests.support.people import browser, make_account, signed_in
from tests.support.single_sign_on import HTML, House, come_back, leave, open_house
from vskill_platform.actions.people.access import (
    CHANGE_ACCESS,
    MAKE_SCIM_TOKEN,
    REMOVE_SCIM_TOKEN,
    SHOW_ACCESS,
    ChangeAccess,
    ScimIssuer,
)
from vskill_platform.actions.people.accounts import (
    CHANGE_ROLE,
    DISABLE_ACCOUNT,
    ENABLE_ACCOUNT,
    RESET_PASSWORD,
    ChangeAccount,
    ChangeAccountRole,
    ResetPassword,
)
from vskill_platform.actions.people.teams import ADD_TO_TEAM, CREATE_TEAM, ChangeTeam, ExplainedTeam
from vskill_platform.actions.principal import OPERATOR
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import NamespaceRole, RegistryMode, Submitters, Visibility
from vskill_platform.domain.people.token import TokenScope
from vskill_platform.ledger.kv.contract import KV
from vskill_platform.ledger.kv.entries import Entry, EntryPage, Settled
from vskill_platform.setting_issuers import MOST_GROUPS
from vskill_platform.store.people.accounts import Role, User
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.people.credentials import IDLE_MS
from vskill_platform.store.people.device_codes import answer_code, make_code
from vskill_platform.store.people.readers import audiences_of_actor
from vskill_platform.store.people.sign_in_rule import READ_MS, standing_of
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

WHY = "a test"
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
#: Where her account is.
USERS = "/Users"
MIA_AT = f"{USERS}/mia-lee"
FOUND_BY = {"userName": "mia.lee@ACME.example", "externalId": "00u1", "id": "mia-lee"}
MIA: dict[str, Any] = {
    "schemas": [USER],
    "userName": "mia.lee@acme.example",
    "externalId": "00u1",
    "active": True,
}


class Directory:
    """The directory of an issuer, with its token."""

    def __init__(self, client: httpx2.AsyncClient, name: str, token: str) -> None:
        self._client = client
        self._base = f"/scim/v2/{name}"
        self.token = token

    async def ask(self, method: str, path: str, json: Any = None, **more: Any) -> httpx2.Response:
        headers = {"authorization": f"Bearer {self.token}"}
        answer = await self._client.request(method, self._base + path, json=json, headers=headers, **more)
        if answer.status_code != 204:
            assert answer.headers["content-type"] == "application/scim+json", answer.text
        return answer

    async def make(self, **changes: Any) -> dict[str, Any]:
        answer = await self.ask("POST", "/Users", MIA | changes)
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    async def patch(self, path: str, *operations: dict[str, Any]) -> httpx2.Response:
        schemas = ["urn:ietf:params:scim:api:messages:2.0:PatchOp"]
        return await self.ask("PATCH", path, {"schemas": schemas, "Operations": operations})

    async def set_active(self, name: str, active: object) -> int:
        return (
            await self.patch(f"/Users/{name}", {"op": "replace", "value": {"active": active}})
        ).status_code

    async def group(self, name: str, *members: str, **more: Any) -> str:
        sent = {"displayName": name, "members": [{"value": one} for one in members], **more}
        answer = await self.ask("POST", "/Groups", sent)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])


async def make_token(house: House, name: str = "acme") -> str:
    with active_env(house.env):
        return (await MAKE_SCIM_TOKEN(house.env, OPERATOR, ScimIssuer(issuer=name, reason=WHY))).token


@asynccontextmanager
async def open_directory(tmp_path, mode: RegistryMode = RegistryMode.PUBLIC, **rule: Any):
    async with open_house(tmp_path, mode, **rule) as house, browser(create_app(house.env)) as client:
        yield house, Directory(client, "acme", await make_token(house))


@pytest.fixture
async def opened(tmp_path):
    async with open_directory(tmp_path, reviewer_groups=("reviewers",), admin_groups=("admins",)) as found:
        yield found


async def the_user(house: House, name: str = "mia-lee") -> User:
    user = await house.user(name)
    assert user is not None
    return user


# The token.


async def test_the_token_is_kept_as_a_hash_replaced_and_removed(opened):
    house, acme = opened
    env = house.env
    stored = await env.kv.get(keys.scim(house.acme.address))
    assert stored is not None and acme.token not in stored.value.decode()
    with active_env(env):
        before, _ = (await SHOW_ACCESS(env, OPERATOR, SHOW_ACCESS.request())).issuers
        assert before.scim_since is not None and before.scim_last_used_at is None
        assert (await acme.ask("GET", "/Users")).status_code == 200
        after, other = (await SHOW_ACCESS(env, OPERATOR, SHOW_ACCESS.request())).issuers
        assert after.scim_last_used_at is not None and other.scim_since is None
        # Who may submit is another setting of the same record.
        await CHANGE_ACCESS(env, OPERATOR, ChangeAccess(submitters=Submitters.SIGNED_IN, reason=WHY))
    assert (await acme.ask("GET", "/Users")).status_code == 200
    old, acme.token = acme.token, await make_token(house)
    assert (await acme.ask("GET", "/Users")).status_code == 200
    for bad in (old, "", "x" * 5000, "vsks_"):
        acme.token, kept = bad, acme.token
        answer = await acme.ask("GET", "/Users")
        assert answer.status_code == 401 and answer.json()["status"] == "401"
        acme.token = kept
    acme.token = await make_token(house, "other")
    assert (await acme.ask("GET", "/Users")).status_code == 401, "it is another directory's"
    acme.token = await make_token(house)
    with active_env(env):
        await REMOVE_SCIM_TOKEN(env, OPERATOR, ScimIssuer(issuer="acme", reason=WHY))
        actions = [one.action for one in (await list_audit()).items]
    assert (await acme.ask("GET", "/Users")).status_code == 401
    assert actions.count("scim token made") == 4 and "scim token removed" in actions


async def test_neither_token_is_the_other(opened):
    house, acme = opened
    with active_env(house.env):
        await make_account(house.env, "ada", Role.ADMIN)
        admins = (await create_token("ada", "x", [TokenScope.ADMIN], by="system", days=1)).secret
    async with browser(create_app(house.env)) as client:
        bearer = {"authorization": f"Bearer {acme.token}"}
        assert (await client.get("/api/v1/admin/accounts", headers=bearer)).status_code == 401
        acme.token = admins
        assert (await acme.ask("GET", "/Users")).status_code == 401
        (counted,) = (one for one in house.env.refusals.take(None) if one.first.action == "scim")
        assert (counted.first.target, counted.count) == ("acme", 1), "the audit has it"
    async with signed_in(create_app(house.env), house.env, "eve", Role.ADMIN) as eve:
        assert (await eve.client.get("/scim/v2/acme/Users")).status_code == 401


async def test_an_admin_makes_and_removes_it_on_a_page(opened):
    house, _ = opened
    async with signed_in(create_app(house.env), house.env, "ada", Role.ADMIN) as ada:
        assert "It has no token" in (await ada.get("/admin/access")).text
        made = await ada.send("/admin/access/scim/make", issuer="other", reason=WHY)
        assert made.status_code == 201 and "vsks_" in made.text and "/scim/v2/other" in made.text
        shown = (await ada.get("/admin/access")).text
        assert "vsks_" not in shown and "never used" in shown
        refused = await ada.send("/admin/access/scim/remove", issuer="other", reason=WHY)
        assert "tick the box" in (await ada.get(refused.headers["location"])).text
        gone = await ada.send("/admin/access/scim/remove", issuer="other", reason=WHY, confirm="yes")
        assert "has no access any more" in (await ada.get(gone.headers["location"])).text


# Which account a person gets.


async def test_the_account_that_a_directory_made_is_that_of_the_first_sign_in(tmp_path):
    """By the subject alone, and past the rule of the sign-in: the directory names whom it sends."""
    rule = {"allowed_groups": ("staff",)}
    async with open_directory(tmp_path, RegistryMode.INTERNAL, **rule) as (house, acme):
        assert (await house.sign_in()).status_code == 403
        made = await acme.make()
        assert made["id"] == "mia-lee" and made["meta"]["location"].endswith("/scim/v2/acme/Users/mia-lee")
        house.acme.person |= {"preferred_username": "somebody-else"}
        assert (await house.sign_in()).status_code == 303
        user = await the_user(house)
        assert [(one.id, one.login) for one in user.identities] == [("00u1", "somebody-else")]
        assert user.identities[0].directory is not None and await house.user("somebody-else") is None
        # The same address and name, and another subject.
        house.acme.person |= {"sub": "00u2", "email": "mia.lee@acme.example", "email_verified": True}
        assert (await house.sign_in()).status_code == 403


async def test_another_claim_can_be_the_subject(tmp_path):
    """Entra's `sub` is another one for each application; its `oid` is what the directory knows."""
    async with open_directory(tmp_path, subject_claim="oid") as (house, acme):
        await acme.make(externalId="11111111-2222")
        assert (await house.sign_in()).status_code == 401, "without the claim there is nobody"
        house.acme.person["oid"] = "11111111-2222"
        assert (await house.sign_in()).status_code == 303
        assert len((await the_user(house)).identities) == 1


async def test_an_account_of_before_is_taken_by_its_subject_and_of_no_other_issuer(opened):
    house, acme = opened
    await house.sign_in()
    made = await acme.make(userName="m.lee@acme.example")
    assert made["id"] == "mia-lee" and len(await accounts(house)) == 1
    async with browser(create_app(house.env)) as client:
        other = Directory(client, "other", await make_token(house, "other"))
        assert (await other.ask("GET", MIA_AT)).status_code == 404
        assert (await other.ask("GET", "/Users")).json()["totalResults"] == 0
        assert (await other.make())["id"].startswith("mia-lee-"), (
            "the same subject elsewhere is somebody else"
        )
        assert await other.set_active("mia-lee", False) == 404
    assert not (await the_user(house)).disabled


async def accounts(house: House) -> list[str]:
    page = await house.env.kv.scan(keys.user.prefix)
    return [item.key.removeprefix(keys.user.prefix) for item in page.items]


@pytest.mark.parametrize("holder", ["account", "team", "namespace"])
async def test_a_name_that_is_taken_is_not_taken_over(opened, holder):
    house, acme = opened
    with active_env(house.env):
        if holder == "account":
            await make_account(house.env, "mia-lee", Role.AUTHOR)
        elif holder == "team":
            await CREATE_TEAM(house.env, OPERATOR, ExplainedTeam(name="mia-lee", reason=WHY))
        else:
            await manage(house.env, "upload~mia-lee", Visibility.TEAM)
    assert (await acme.make())["id"].startswith("mia-lee-")


async def test_a_changed_name_renames_nothing_and_the_subject_never_changes(opened):
    house, acme = opened
    await acme.make()
    renamed = await acme.patch(MIA_AT, {"op": "Replace", "path": "userName", "value": "boss@acme.example"})
    assert renamed.json()["userName"] == "boss@acme.example" and renamed.json()["id"] == "mia-lee"
    assert await accounts(house) == ["mia-lee"]
    for change in (
        {"op": "replace", "path": "externalId", "value": "00u9"},
        {"op": "remove", "path": "externalId"},
    ):
        refused = await acme.patch(MIA_AT, change)
        assert (refused.status_code, refused.json()["scimType"]) == (400, "mutability")
    again = await acme.ask("POST", "/Users", MIA)
    assert (again.status_code, again.json()["scimType"]) == (409, "uniqueness")
    named_alike = await acme.ask("POST", "/Users", MIA | {"externalId": "x", "userName": "BOSS@acme.example"})
    assert named_alike.status_code == 409 and await accounts(house) == ["mia-lee"]


# Reading.


async def test_what_is_found_by_a_filter(opened):
    _, acme = opened
    await acme.make()
    await acme.make(userName='o"neil', externalId="00u2")
    for text, found in (
        ('userName eq "MIA.LEE@acme.example"', ["mia-lee"]),
        ('username EQ "o\\"neil"', ["o-neil"]),
        ('externalId eq "00u2"', ["o-neil"]),
        ('externalId eq "00U2"', []),
        ('id eq "mia-lee"', ["mia-lee"]),
        ('userName eq "nobody"', []),
    ):
        answer = await acme.ask("GET", "/Users", params={"filter": text})
        assert [one["id"] for one in answer.json()["Resources"]] == found, text


@pytest.mark.parametrize(
    "text",
    [
        "userName",
        'userName co "m"',
        'active eq "true"',
        'userName eq "a" and id eq "b"',
        'emails[type eq "work"].value eq "x"',
        'userName eq "\\q"',
        f'userName eq "{"a" * 5000}"',
        "(((((",
    ],
)
async def test_another_filter_is_refused(opened, text):
    _, acme = opened
    answer = await acme.ask("GET", "/Users", params={"filter": text})
    assert (answer.status_code, answer.json()["scimType"]) == (400, "invalidFilter")
    detail = answer.json()["detail"]
    assert 'Use userName eq "..."' in detail or detail.endswith("Write it as in JSON.")


async def test_lists_come_in_pages(opened):
    _, acme = opened
    for number in range(5):
        await acme.make(userName=f"p{number}", externalId=f"e{number}")
    everybody = [one["id"] for one in (await acme.ask("GET", "/Users")).json()["Resources"]]
    assert sorted(everybody) == ["p0", "p1", "p2", "p3", "p4"]
    for start, count, expected in (
        ("1", "2", everybody[:2]),
        ("5", "100", everybody[4:]),
        ("0", "1", everybody[:1]),
        ("9", "2", []),
        ("1", "0", []),
        ("1", "-3", []),
        ("1", "99999999", everybody),
    ):
        found = (await acme.ask("GET", "/Users", params={"startIndex": start, "count": count})).json()
        assert [one["id"] for one in found["Resources"]] == expected
        assert (found["totalResults"], found["itemsPerPage"]) == (5, len(expected))
    assert (await acme.ask("GET", "/Users", params={"count": "many"})).status_code == 400
    assert (await acme.ask("GET", "/Users?sortBy=userName&sortOrder=ascending")).status_code == 200


# Changing, in both dialects.


OFF = [
    {"op": "replace", "value": {"active": False}},
    {"op": "Replace", "path": "active", "value": "False"},
    {"op": "replace", "path": f"{USER}:active", "value": False},
    {"op": "add", "path": "ACTIVE", "value": "false"},
]


@pytest.mark.parametrize("operation", OFF)
async def test_somebody_is_locked_in_every_dialect(opened, operation):
    house, acme = opened
    await acme.make()
    answer = await acme.patch(MIA_AT, operation)
    assert answer.status_code == 200 and answer.json()["active"] is False
    assert (await the_user(house)).disabled


async def test_a_replacement_that_does_not_speak_of_it_unlocks_nobody(opened):
    house, acme = opened
    await acme.make()
    assert await acme.set_active("mia-lee", False) == 200
    sent = {"schemas": [USER], "userName": "mia.lee@acme.example", "emails": [{"value": "x@y.example"}]}
    assert (await acme.ask("PUT", MIA_AT, sent)).json()["active"] is False
    assert (await the_user(house)).disabled
    await acme.ask("PUT", MIA_AT, MIA | {"active": True, "displayName": "Mia"})
    assert not (await the_user(house)).disabled


async def test_what_is_not_kept_is_accepted_and_not_kept(opened):
    house, acme = opened
    made = await acme.make(
        name={"givenName": "Mia"},
        emails=[{"value": "m@acme.example", "type": "work"}],
        password="hunter2 hunter2",
    )
    answer = await acme.patch(
        MIA_AT,
        {"op": "Add", "path": 'emails[type eq "work"].value', "value": "n@acme.example"},
        {"op": "Replace", "path": "name.givenName", "value": "Maria"},
        {
            "op": "Add",
            "path": "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department",
            "value": "Sales",
        },
        {"op": "replace", "value": {'phoneNumbers[type eq "work"].value': "1", "title": "Chief"}},
        {"op": "remove", "path": "title"},
        {"op": "Replace", "path": "displayName", "value": "Maria Lee"},
    )
    assert answer.status_code == 200 and answer.json()["displayName"] == "Maria Lee"
    assert "emails" not in made and "name" not in answer.json()
    user = await the_user(house)
    assert user.password is None and "acme.example" not in repr(user.identities).replace(
        "mia.lee@acme.example", ""
    )


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ({"op": "move", "path": "active"}, "invalidSyntax"),
        ({"op": "remove"}, "noTarget"),
        ({"op": "replace", "value": 5}, "noTarget"),
        ({"op": "remove", "path": "active"}, "mutability"),
        ({"op": "replace", "path": "active", "value": "maybe"}, "invalidValue"),
        ({"op": "replace", "path": "userName", "value": ""}, "invalidValue"),
        ({"op": "replace", "path": "userName", "value": {"a": 1}}, "invalidValue"),
        ({"op": "replace", "path": "userName.x", "value": "a"}, "invalidPath"),
        ({"op": "replace", "path": 'active[value eq "x"]', "value": "a"}, "invalidPath"),
    ],
)
async def test_a_change_that_makes_no_sense_is_refused(opened, operation, kind):
    house, acme = opened
    await acme.make()
    before = await the_user(house)
    answer = await acme.patch(MIA_AT, operation)
    assert (answer.status_code, answer.json()["scimType"]) == (400, kind), answer.text
    assert await the_user(house) == before


@pytest.mark.parametrize("body", [b"", b"[]", b"5", b"{", b'{"userName": 5}', b"\xff", b"[" * 100_000])
async def test_strange_bodies_are_refused(opened, body):
    _, acme = opened
    headers = {"authorization": f"Bearer {acme.token}"}
    for method, path in (
        ("POST", "/Users"),
        ("POST", "/Groups"),
        ("PATCH", f"{USERS}/x"),
        ("PUT", f"{USERS}/x"),
    ):
        answer = await acme._client.request(method, f"/scim/v2/acme{path}", content=body, headers=headers)
        assert answer.status_code in (400, 404), answer.text
    answer = await acme._client.post("/scim/v2/acme/Users", content=b" " * 1_000_001, headers=headers)
    assert answer.status_code == 413


async def test_only_a_directory_is_told_what_is_wrong_with_its_request(opened):
    _, acme = opened
    acme.token = "vsks_wrong"
    for method, path in (("POST", "/Users"), ("PATCH", MIA_AT), ("PUT", MIA_AT), ("PATCH", "/Groups/x")):
        assert (await acme.ask(method, path, {"userName": 5})).status_code == 401, (method, path)


class ReadKV(CountingKV):
    """It counts the accounts that are read, too."""

    def __init__(self, inner: KV) -> None:
        super().__init__(inner)
        self.accounts = 0

    def count(self, keys_read: Iterable[str]) -> None:
        self.accounts += sum(one.startswith(keys.user.prefix) for one in keys_read)

    async def get(self, key: str) -> Entry | None:
        self.count([key])
        return await super().get(key)

    async def get_many(self, wanted: Iterable[str]) -> Settled:
        asked = list(wanted)
        self.count(asked)
        return await super().get_many(asked)

    async def scan(self, prefix: str, **options: Any) -> EntryPage:
        found = await super().scan(prefix, **options)
        self.count(one.key for one in found.items)
        return found


async def test_what_a_request_reads_does_not_grow_with_the_accounts(opened):
    """Whatever a directory asks: a person found, made, renamed or put into a group, a page of a list, a group."""
    house, acme = opened
    await acme.make()
    group = await acme.group("team", "mia-lee")
    counted: list[dict[str, tuple[int, int]]] = []
    for before, after in ((0, 5), (5, 60)):
        for number in range(before, after):
            await make_account(house.env, f"bystander-{number}", Role.AUTHOR)
            await acme.make(userName=f"p{number}", externalId=f"e{number}")
        counted.append({})
        renamed = {"op": "replace", "path": "userName", "value": f"mia{after}"}
        member = {"op": "add", "path": "members", "value": [{"value": "p1"}]}
        gone = {"op": "remove", "path": 'members[value eq "p1"]'}
        for method, path, sent in (
            ("GET", MIA_AT, None),
            *(("GET", f'/Users?filter={name} eq "{value}"', None) for name, value in FOUND_BY.items()),
            ("GET", "/Users?startIndex=2&count=3", None),
            ("POST", "/Users", MIA | {"userName": f"new{after}", "externalId": f"new{after}"}),
            ("PATCH", MIA_AT, {"Operations": [renamed]}),
            ("PATCH", MIA_AT, {"Operations": [{**renamed, "value": MIA["userName"]}]}),
            ("GET", "/Groups", None),
            ("PATCH", f"/Groups/{group}", {"Operations": [member]}),
            ("PATCH", f"/Groups/{group}", {"Operations": [gone]}),
        ):
            kv = ReadKV(house.env.kv)
            env = msgspec.structs.replace(house.env, kv=kv)
            async with browser(create_app(env)) as client:
                answer = await Directory(client, "acme", acme.token).ask(method, path, sent)
            assert answer.status_code in (200, 201), answer.text
            assert method != "GET" or answer.json().get("totalResults", 1) >= 1, path
            counted[-1][f"{method} {path} {len(counted[-1])}"] = (kv.accounts, kv.total)
    few, many = counted
    assert few == many
    assert max(accounts for accounts, _ in many.values()) <= 6


async def test_what_finds_accounts_follows_every_change(opened):
    house, acme = opened

    async def found(name: str) -> list[str]:
        asked = {"filter": f'userName eq "{name}"'}
        return [one["id"] for one in (await acme.ask("GET", "/Users", params=asked)).json()["Resources"]]

    await acme.make()
    await acme.make(userName="p", externalId="e")
    group = await acme.group("team", "mia-lee", "p")
    renamed = {"op": "replace", "path": "userName", "value": "Mia.King@acme.example"}
    assert (await acme.patch(MIA_AT, renamed)).status_code == 200
    assert (await found(MIA["userName"]), await found("mia.king@ACME.example")) == ([], ["mia-lee"])
    assert (await acme.patch(f"{USERS}/p", {**renamed, "value": "MIA.KING@acme.example"})).status_code == 409
    assert (await acme.patch(f"{USERS}/p", {**renamed, "value": MIA["userName"]})).status_code == 200
    assert await found(MIA["userName"]) == ["p"]
    assert (await acme.ask("DELETE", MIA_AT)).status_code == 204
    assert await found("mia.king@acme.example") == []
    members = (await acme.ask("GET", f"/Groups/{group}")).json()["members"]
    assert [one["value"] for one in members] == ["p"]
    assert (await acme.ask("GET", "/Users")).json()["totalResults"] == 1
    stored = (await house.env.kv.list("scim_user:")).items, (await house.env.kv.list("scim_member:")).items
    assert [len(one) for one in stored] == [1, 1], "nothing of her is left behind"
    await acme.make(userName="mia.king@acme.example")
    assert await found("mia.king@acme.example") == ["mia-lee"]


# Leaving.


async def test_leaving_ends_everything_at_once_and_coming_back_brings_no_token_back(opened):
    house, acme = opened
    await acme.make()
    async with browser(create_app(house.env)) as client:
        await house.sign_in(client=client)
        with active_env(house.env):
            made = await create_token("mia-lee", "x", [TokenScope.READ, TokenScope.OWN], by="system", days=30)
            code, device = await make_code("laptop", "192.0.2.1")
            await answer_code(code, "mia-lee", ("read",))
        bearer = {"authorization": f"Bearer {made.secret}"}

        async def seen() -> tuple[int, int, int]:
            page = await client.get("/account", headers=HTML)
            read = await client.get("/api/v1/account", headers=bearer)
            sent = {"name": "y", "scopes": ["read"], "days": 1}
            wrote = await client.post("/api/v1/tokens", json=sent, headers=bearer)
            return page.status_code, read.status_code, wrote.status_code

        assert await seen() == (200, 200, 201)
        assert await acme.set_active("mia-lee", False) == 200
        assert await seen() == (303, 401, 401)
        assert (await house.sign_in()).status_code == 403
        house.clock.advance(1_000)
        assert await acme.set_active("mia-lee", True) == 200
        assert await seen() == (303, 401, 401)
        asked = {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": device}
        waited = await client.post("/api/cli/device/token", json=asked)
        assert waited.json()["error"] == "access_denied", "nor does a machine that waited get one"
        assert (await house.sign_in(client=client)).status_code == 303
        assert (await seen())[0] == 200


async def test_what_an_admin_decides_about_an_account_stays(opened):
    house, acme = opened
    await acme.make()
    mia = ChangeAccount(name="mia-lee", reason=WHY)
    with active_env(house.env):
        await DISABLE_ACCOUNT(house.env, OPERATOR, mia)
        for active in (True, False, True):
            assert await acme.set_active("mia-lee", active) == 200
            assert (await the_user(house)).disabled, "an admin disabled it"
        await ENABLE_ACCOUNT(house.env, OPERATOR, mia)
        await acme.set_active("mia-lee", False)
        await ENABLE_ACCOUNT(house.env, OPERATOR, mia)
        await acme.group("core", "mia-lee")
        assert not (await the_user(house)).disabled, "an admin let it in, and a group says nothing about that"
        await acme.set_active("mia-lee", False)
        assert (await the_user(house)).disabled, "the directory has said it again"
        await ENABLE_ACCOUNT(house.env, OPERATOR, mia)
        assert (await acme.ask("DELETE", MIA_AT)).status_code == 204
        assert (await the_user(house)).disabled


async def test_what_the_directory_said_while_an_admin_had_disabled_it_is_not_lost(opened):
    house, acme = opened
    await acme.make()
    mia = ChangeAccount(name="mia-lee", reason=WHY)
    with active_env(house.env):
        await DISABLE_ACCOUNT(house.env, OPERATOR, mia)
        await acme.set_active("mia-lee", False)
        await ENABLE_ACCOUNT(house.env, OPERATOR, mia)
        await house.sign_in()
        assert await standing_of(await the_user(house)) is not None
        house.clock.advance(READ_MS + 1)
        assert await standing_of(await the_user(house), by_token=True) is None, "the directory keeps it not"
        await acme.ask("PUT", MIA_AT, MIA | {"active": False})
        assert (await the_user(house)).disabled


async def test_who_is_deleted_and_sent_again_is_the_same_account(opened):
    house, acme = opened
    await acme.make()
    assert (await acme.ask("DELETE", MIA_AT)).status_code == 204
    assert (await acme.ask("GET", MIA_AT)).status_code == 404
    assert (await acme.ask("DELETE", MIA_AT)).status_code == 404
    user = await the_user(house)
    assert user.disabled and (await house.sign_in()).status_code == 403
    assert (await acme.make())["id"] == "mia-lee" and await accounts(house) == ["mia-lee"]
    assert (await house.sign_in()).status_code == 303


async def test_no_directory_changes_the_admin_with_a_password_or_locks_the_last_one(opened):
    house, acme = opened
    async with signed_in(create_app(house.env), house.env, "ada", Role.ADMIN) as ada:
        query = house.acme.authorize(await leave(ada.client, "acme", "/account"))
        await come_back(ada.client, "acme", query)
        with active_env(house.env):
            await RESET_PASSWORD(house.env, OPERATOR, ResetPassword(name="ada", reason=WHY))
        before = await the_user(house, "ada")
        refused = await acme.ask("POST", "/Users", MIA)
        assert refused.status_code == 403 and "no directory changes" in refused.json()["detail"]
        assert await the_user(house, "ada") == before and await accounts(house) == ["ada"]
    # An account that SCIM made does not become untouchable by a password; the last admin is.
    await acme.make(externalId="00u2")
    with active_env(house.env):
        await CHANGE_ROLE(house.env, OPERATOR, ChangeAccountRole(name="mia-lee", role=Role.ADMIN, reason=WHY))
        await RESET_PASSWORD(house.env, OPERATOR, ResetPassword(name="mia-lee", reason=WHY))
        assert await acme.set_active("mia-lee", False) == 200
        assert await acme.set_active("mia-lee", True) == 200
        await DISABLE_ACCOUNT(house.env, OPERATOR, ChangeAccount(name="ada", reason=WHY))
    assert await acme.set_active("mia-lee", False) == 403
    assert (await acme.ask("DELETE", MIA_AT)).status_code == 403
    assert not (await the_user(house)).disabled


async def test_whom_a_directory_promotes_after_the_fact_it_cannot_touch(opened):
    """An account that signed in first, and got role and password here later."""
    house, acme = opened
    await house.sign_in()
    await acme.make()
    core = await acme.group("core")
    with active_env(house.env):
        await make_account(house.env, "eve", Role.ADMIN)
        await CHANGE_ROLE(house.env, OPERATOR, ChangeAccountRole(name="mia-lee", role=Role.ADMIN, reason=WHY))
        await RESET_PASSWORD(house.env, OPERATOR, ResetPassword(name="mia-lee", reason=WHY))
    assert await acme.set_active("mia-lee", False) == 403
    joined = await acme.patch(
        f"/Groups/{core}", {"op": "add", "path": "members", "value": [{"value": "mia-lee"}]}
    )
    assert joined.status_code == 200 and (await acme.ask("DELETE", MIA_AT)).status_code == 403
    assert not (await the_user(house)).disabled


async def test_one_who_cannot_join_keeps_nobody_in_a_group(opened):
    """Nor does an admin with a password, whom no directory locks, keep those who sort behind."""
    house, acme = opened
    await house.sign_in()
    await acme.make()
    for name in ("ann", "zoe"):
        await acme.make(userName=name, externalId=name)
    with active_env(house.env):
        await make_account(house.env, "eve", Role.ADMIN)
        await CHANGE_ROLE(house.env, OPERATOR, ChangeAccountRole(name="mia-lee", role=Role.ADMIN, reason=WHY))
        await RESET_PASSWORD(house.env, OPERATOR, ResetPassword(name="mia-lee", reason=WHY))
    core = await acme.group("core", "mia-lee", "zoe")
    ann = await the_user(house, "ann")
    (link,) = ann.identities
    assert link.directory is not None
    entry = msgspec.structs.replace(link.directory, groups=tuple(map(str, range(MOST_GROUPS))))
    full = msgspec.structs.replace(ann, identities=(msgspec.structs.replace(link, directory=entry),))
    await house.env.kv.put(keys.user("ann"), msgspec.json.encode(full))
    others = [{"value": "ann"}]
    refused = await acme.patch(f"/Groups/{core}", {"op": "replace", "path": "members", "value": others})
    assert (refused.status_code, refused.json()["scimType"]) == (400, "tooMany")
    assert (await acme.ask("GET", f"/Groups/{core}")).json()["members"] == []


# Groups.


@pytest.fixture
async def grouped(opened):
    """A private namespace of whoever is in the group `core` at Acme."""
    house, acme = opened
    with active_env(house.env):
        await CREATE_TEAM(house.env, OPERATOR, ExplainedTeam(name="core", reason=WHY))
        members = ChangeTeam(name="core", accounts=("oidc:acme:core", "oidc:acme:0db5"), reason=WHY)
        await ADD_TO_TEAM(house.env, OPERATOR, members)
    await manage(house.env, "canary", Visibility.TEAM, "team:core", role=NamespaceRole.MAINTAINER)
    await acme.make()
    return house, acme


async def reads(house: House, name: str = "mia-lee") -> bool:
    with active_env(house.env):
        audiences = await audiences_of_actor(f"user:{name}")
    return isinstance(audiences, frozenset) and "ns:canary:team" in audiences


JOIN_AND_LEAVE = [
    (
        {"op": "Add", "path": "members", "value": [{"$ref": None, "value": "mia-lee"}]},
        {"op": "Remove", "path": "members", "value": [{"$ref": None, "value": "mia-lee"}]},
    ),
    (
        {"op": "add", "path": "members", "value": [{"value": "mia-lee", "display": "Mia"}]},
        {"op": "remove", "path": 'members[value eq "mia-lee"]'},
    ),
    (
        {"op": "replace", "path": "members", "value": [{"value": "mia-lee"}]},
        {"op": "replace", "path": "members", "value": []},
    ),
    ({"op": "replace", "value": {"members": [{"value": "mia-lee"}]}}, {"op": "remove", "path": "members"}),
    (
        {"op": "add", "path": "members", "value": {"value": "mia-lee"}},
        {"op": "replace", "value": {"members": []}},
    ),
]


@pytest.mark.parametrize(("join", "leave_it"), JOIN_AND_LEAVE)
async def test_groups_come_and_go_in_every_dialect_at_once(grouped, join, leave_it):
    house, acme = grouped
    before = await house.env.kv.get(keys.team("core"))
    group = await acme.group("core")
    assert not await reads(house)
    assert (await acme.patch(f"/Groups/{group}", join)).status_code == 200
    shown = (await acme.ask("GET", f"/Groups/{group}")).json()
    assert [one["value"] for one in shown["members"]] == ["mia-lee"] and await reads(house)
    assert (await acme.ask("GET", MIA_AT)).json()["groups"] == [{"value": group}]
    lean = (await acme.ask("GET", f"/Groups/{group}?excludedAttributes=members")).json()
    assert "members" not in lean and lean["displayName"] == "core"
    house.clock.advance(10 * READ_MS)
    assert await reads(house), "what a directory says has no age"
    assert (await acme.patch(f"/Groups/{group}", leave_it)).status_code == 200
    assert not await reads(house)
    assert await house.env.kv.get(keys.team("core")) == before, "no team is written"


async def test_a_group_is_named_by_its_external_id_and_keeps_its_value(grouped):
    house, acme = grouped
    group = await acme.group("Core people", "mia-lee", externalId="0db5")
    assert await reads(house)
    renamed = await acme.patch(
        f"/Groups/{group}", {"op": "Replace", "path": "displayName", "value": "Others"}
    )
    assert renamed.json()["displayName"] == "Others" and await reads(house)
    found = (await acme.ask("GET", "/Groups", params={"filter": 'displayName eq "others"'})).json()
    assert [one["id"] for one in found["Resources"]] == [group]
    changed = await acme.patch(f"/Groups/{group}", {"op": "replace", "path": "externalId", "value": "core"})
    assert changed.json()["scimType"] == "mutability"
    twice = await acme.ask("POST", "/Groups", {"displayName": "x", "externalId": "0db5"})
    assert twice.status_code == 409
    assert (await acme.ask("DELETE", f"/Groups/{group}")).status_code == 204
    assert not await reads(house) and (await acme.ask("GET", f"/Groups/{group}")).status_code == 404


async def test_a_member_that_nobody_sent_stops_the_change_before_it_begins(grouped):
    house, acme = grouped
    with active_env(house.env):
        await make_account(house.env, "eve", Role.AUTHOR)
    group = await acme.group("core")
    added = {"op": "add", "path": "members", "value": [{"value": "mia-lee"}, {"value": "eve"}]}
    answer = await acme.patch(f"/Groups/{group}", added)
    assert (answer.status_code, answer.json()["scimType"]) == (400, "invalidValue")
    assert "eve" in answer.json()["detail"] and not await reads(house)
    assert (
        await acme.ask("POST", "/Groups", {"displayName": "y", "members": [{"value": "eve"}]})
    ).status_code == 400
    assert (await acme.ask("GET", "/Groups")).json()["totalResults"] == 1


async def test_the_groups_of_a_sign_in_count_until_the_directory_speaks(grouped):
    house, acme = grouped
    house.acme.person["groups"] = ["core"]
    await house.sign_in()
    assert await reads(house)
    house.clock.advance(READ_MS + 1)
    assert not await reads(house), "they have their age"
    await house.sign_in()
    other = await acme.group("others", "mia-lee")
    assert not await reads(house), "the directory has said which groups they are"
    await acme.patch(f"/Groups/{other}", {"op": "remove", "path": "members"})
    await house.sign_in()
    assert not await reads(house)


async def test_a_role_by_group_lasts_as_long_as_the_group(grouped):
    house, acme = grouped
    group = await acme.group("admins", "mia-lee")
    async with browser(create_app(house.env)) as client:
        await house.sign_in(client=client)
        assert (await client.get("/admin/settings", headers=HTML)).status_code == 200
        assert (await the_user(house)).role is Role.AUTHOR
        for _ in range(6):
            house.clock.advance(8 * 3_600_000)
            shown = await client.get("/admin/settings", headers=HTML)
            assert shown.status_code == 200, "no day has ended it"
        await acme.ask("DELETE", f"/Groups/{group}")
        assert (await client.get("/admin/settings", headers=HTML)).status_code == 403


@pytest.mark.parametrize("is_admin_first", [True, False])
async def test_an_admin_by_group_is_idle_no_longer_than_any_admin(opened, is_admin_first):
    house, acme = opened
    await acme.make()
    if is_admin_first:
        await acme.group("admins", "mia-lee")
    async with browser(create_app(house.env)) as client:
        await house.sign_in(client=client)
        if not is_admin_first:
            await acme.group("admins", "mia-lee")
        for idle_ms, status in ((IDLE_MS[Role.ADMIN] * 3 // 4, 200), (IDLE_MS[Role.ADMIN], 303)):
            house.clock.advance(idle_ms)
            assert (await client.get("/account", headers=HTML)).status_code == status


async def test_without_its_token_the_directory_vouches_for_nobody(grouped):
    house, acme = grouped
    await acme.group("core", "mia-lee")
    house.clock.advance(READ_MS + 1)
    assert await reads(house)
    with active_env(house.env):
        await REMOVE_SCIM_TOKEN(house.env, OPERATOR, ScimIssuer(issuer="acme", reason=WHY))
    assert not await reads(house)
    await house.sign_in()
    assert not await reads(house), "its word counts no more, and the sign-in said nothing"


async def test_a_token_that_is_made_again_revives_nothing_that_was_said_before(grouped):
    house, acme = grouped
    core = await acme.group("core", "mia-lee")
    await acme.make(userName="left", externalId="00u2")
    await acme.set_active("left", False)
    house.clock.advance(10 * READ_MS)
    acme.token = await make_token(house)
    assert await reads(house), "a token that replaces one takes nothing back"
    with active_env(house.env):
        await REMOVE_SCIM_TOKEN(house.env, OPERATOR, ScimIssuer(issuer="acme", reason=WHY))
    house.clock.advance(10 * READ_MS)
    acme.token = await make_token(house)
    assert not await reads(house)
    with active_env(house.env):
        assert await standing_of(await the_user(house)) is None, "nor does it keep the account"
    assert (await the_user(house, "left")).disabled, "whom it locked stays locked"
    assert (await acme.ask("GET", f"/Groups/{core}")).json()["members"] == []
    # It sends them again: the same user, and then the same member.
    assert (await acme.ask("PUT", MIA_AT, MIA)).status_code == 200
    with active_env(house.env):
        assert await standing_of(await the_user(house)) is not None
    assert not await reads(house), "its groups are not said with the user"
    join = {"op": "add", "path": "members", "value": [{"value": "mia-lee"}]}
    assert (await acme.patch(f"/Groups/{core}", join)).status_code == 200 and await reads(house)
    house.clock.advance(10 * READ_MS)
    assert await reads(house)


async def test_every_change_is_in_the_audit_and_what_changes_nothing_is_not(grouped):
    house, acme = grouped
    await acme.group("core", "mia-lee")
    await acme.set_active("mia-lee", False)

    async def said() -> list[tuple[str, str, str]]:
        with active_env(house.env):
            found = (await list_audit()).items
        return [(one.action, one.target, one.by) for one in found if one.by == "scim:acme"]

    entries = await said()
    assert entries == [
        ("scim user changed", "mia-lee", "scim:acme"),
        ("scim group joined", "mia-lee", "scim:acme"),
        ("scim group created", "core", "scim:acme"),
        ("scim user created", "mia-lee", "scim:acme"),
        ("account created", "mia-lee", "scim:acme"),
    ]
    await acme.set_active("mia-lee", "False")
    await acme.ask("PUT", MIA_AT, MIA | {"active": False})
    assert await said() == entries
    with active_env(house.env):
        assert (await list_audit()).items[0].details == {"active": "False"}


def test_an_account_of_an_earlier_release_has_no_directory():
    old = b'{"name":"a","role":"author","created_at":1,"updated_at":1,"identities":[{"id":"1","login":"a","verified_at":1}]}'
    assert msgspec.json.decode(old, type=User).identities[0].directory is None
