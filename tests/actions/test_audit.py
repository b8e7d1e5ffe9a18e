"""The audit's list, and what those who look after the installation see."""

from typing import Any

import pytest

from tests.support.acting import create_token, principal_for
from tests.support.envs import ENGINES, open_test_env
from tests.support.people import browser, make_account, signed_in, token_of
from vskill_client.wire.base import NoParameters
from vskill_core.errors import InvalidInput, NotPermitted, NotSignedIn
from vskill_platform.actions.operation.audit import READ_AUDIT, AuditAnswer, ReadAudit
from vskill_platform.actions.operation.system import (
    SHOW_OVERVIEW,
    SHOW_SETTINGS,
    SHOW_STORAGE,
)
from vskill_platform.actions.people.accounts import CHANGE_ROLE, ChangeAccountRole
from vskill_platform.actions.principal import ANYBODY, OPERATOR, Principal
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import note
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

ADA, ROB = Principal("ada", Role.ADMIN), Principal("rob", Role.REVIEWER)
READS: dict[str, Any] = {
    READ_AUDIT.name: ReadAudit(),
    SHOW_SETTINGS.name: NoParameters(),
    SHOW_STORAGE.name: NoParameters(),
    SHOW_OVERVIEW.name: NoParameters(),
}


@pytest.fixture(params=ENGINES)
async def env(request, tmp_path):
    async with open_test_env(
        request.param, tmp_path, rate_limits="off", judge_api_key="sk-very-secret"
    ) as opened:
        yield opened


@pytest.mark.parametrize(
    "action", [READ_AUDIT, SHOW_OVERVIEW, SHOW_SETTINGS, SHOW_STORAGE], ids=lambda one: one.name
)
async def test_who_may_look(env, action):
    with pytest.raises(NotSignedIn):
        await action(env, ANYBODY, READS[action.name])
    with pytest.raises(NotPermitted):
        await action(env, principal_for("user:ann"), READS[action.name])
    if action is SHOW_OVERVIEW:
        await action(env, ROB, READS[action.name])
    else:
        with pytest.raises(NotPermitted):
            await action(env, ROB, READS[action.name])
    with pytest.raises(NotPermitted):
        await action(env, Principal("ada", Role.AUTHOR, frozenset({"read"})), READS[action.name])
    await action(env, ADA, READS[action.name])
    await action(env, OPERATOR, READS[action.name])


async def test_entries_are_read_page_by_page_to_the_end(env):
    for number in range(5):
        await note("tested", f"thing {number}", by="admin:ada", reason="to see it")
    seen: list[str] = []
    before = None
    while True:
        page = await READ_AUDIT(env, ADA, ReadAudit(before=before, limit=2))
        seen += [one.target for one in page.items]
        before = page.before
        if before is None:
            break
    assert seen == [f"thing {number}" for number in range(4, -1, -1)]
    with pytest.raises(InvalidInput):
        await READ_AUDIT(env, ADA, ReadAudit(before="x"))


async def test_an_entry_names_who_what_why_and_the_token(env):
    for name, role in (("ada", Role.ADMIN), ("ann", Role.AUTHOR)):
        await make_account(env, name, role)
    made = await create_token("ada", "laptop", ["admin"], by="system")
    holder = Principal("ada", Role.ADMIN, made.token.scopes_as(Role.ADMIN), made.token.acting)
    await CHANGE_ROLE(env, holder, ChangeAccountRole(name="ann", role=Role.REVIEWER, reason="knows it"))
    (entry, *_) = (await READ_AUDIT(env, ADA, ReadAudit())).items
    assert (entry.action, entry.by, entry.target, entry.reason) == (
        *("account role", "admin:ada", "ann", "knows it"),
    )
    assert entry.details == {"role": "reviewer"}
    assert entry.who == f"admin:ada (token laptop, {made.token.id})"


async def test_api_and_page_show_the_same(env):
    await note("tested", "a thing", by="admin:ada", reason="to see it")
    app = create_app(env)
    await make_account(env, "ada", Role.ADMIN)
    headers = {"authorization": f"Bearer {await token_of(env, 'ada', 'admin')}"}
    async with browser(app) as client:
        found = (await client.get("/api/v1/admin/audit?limit=1000", headers=headers)).json()
    assert "a thing" in {one["target"] for one in found["items"]}
    assert set(found) == set(AuditAnswer.__struct_encode_fields__)
    async with signed_in(app, env, "ada", Role.ADMIN) as ada:
        assert "a thing" in (await ada.get("/admin/audit")).text


async def test_settings_are_told_without_their_secrets(env):
    found = {one.name: one for one in (await SHOW_SETTINGS(env, ADA, NoParameters())).settings}
    secret = found["VSKILL_JUDGE_API_KEY"]
    assert (secret.value, secret.is_secret) == ("set, and not shown", True)
    assert "sk-very-secret" not in repr(found)


async def test_the_storage_and_the_overview_say_what_is_there(env):
    storage = await SHOW_STORAGE(env, ADA, NoParameters())
    assert (storage.problem, storage.queue, storage.violations) == ("", env.broker.engine, 0)
    overview = await SHOW_OVERVIEW(env, ROB, NoParameters())
    assert (overview.healthy, overview.waiting, overview.open_reports) == (True, 0, 0)
