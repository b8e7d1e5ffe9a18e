"""The audit's list, and what those who look after the installation see."""

from typing import Any

import pytest

from tests.support.acting import create_token, principal_for
from tests.support.envs import ENGINES, open_test_env
from tests.support.manual_clock import START
from tests.support.people import browser, make_account, signed_in, token_of
from vskill_client.wire.base import NoParameters, iso_time
from vskill_core.errors import InvalidInput, NotPermitted, NotSignedIn
from vskill_platform.actions.operation.audit import (
    FOLLOW_AUDIT,
    READ_AUDIT,
    AuditAnswer,
    FollowAudit,
    ReadAudit,
)
from vskill_platform.actions.operation.system import (
    SHOW_OVERVIEW,
    SHOW_SETTINGS,
    SHOW_STORAGE,
)
from vskill_platform.actions.people.accounts import CHANGE_ROLE, ChangeAccountRole
from vskill_platform.actions.principal import ANYBODY, OPERATOR, Principal
from vskill_platform.domain.people.refusal import AuditOutcome
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import OVERLAP_MS, note, record_audit
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

HOUR_MS = 3_600_000

ADA, ROB = Principal("ada", Role.ADMIN), Principal("rob", Role.REVIEWER)
READS: dict[str, Any] = {
    READ_AUDIT.name: ReadAudit(),
    FOLLOW_AUDIT.name: FollowAudit(),
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
    "action", [READ_AUDIT, FOLLOW_AUDIT, SHOW_OVERVIEW, SHOW_SETTINGS, SHOW_STORAGE], ids=lambda one: one.name
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


async def follow_to_the_end(env, after: str = "", limit: int = 2) -> tuple[list[str], str]:
    seen: list[str] = []
    while True:
        page = await FOLLOW_AUDIT(env, ADA, FollowAudit(after=after, limit=limit))
        after = page.after
        if not page.items:
            return seen, after
        seen += [one.target for one in page.items]


async def test_entries_are_followed_forward_and_each_comes(env):
    for number in range(5):
        await note("tested", f"thing {number}", by="admin:ada", reason="to see it")
    seen, after = await follow_to_the_end(env)
    assert list(dict.fromkeys(seen)) == [f"thing {number}" for number in range(5)]
    assert await follow_to_the_end(env, after) == ([], after)
    for number in range(5, 9):
        await note("tested", f"thing {number}", by="admin:ada", reason="to see it")
    seen, after = await follow_to_the_end(env, after)
    assert seen == [f"thing {number}" for number in range(5, 9)]


async def test_the_order_is_that_of_the_commits_whatever_the_clock_says(env):
    _, after = await follow_to_the_end(env)
    await note("tested", "first", by="admin:ada", reason="to see it")
    env.clock.advance(-HOUR_MS)
    await note("tested", "second", by="admin:ada", reason="to see it")
    assert (await follow_to_the_end(env, after))[0] == ["first", "second"]
    # From the beginning it goes by ids, and each page has the order of the commits.
    assert (await follow_to_the_end(env, limit=10))[0][:2] == ["first", "second"]


async def test_a_sink_that_was_away_for_longer_than_changes_are_kept_misses_nothing(env):
    """Whatever the clock did meanwhile: an hour back, or days ahead for one entry."""
    await note("tested", "before", by="admin:ada", reason="to see it")
    env.clock.advance(20 * OVERLAP_MS)
    await note("tested", "ahead", by="admin:ada", reason="to see it")
    env.clock.advance(-20 * OVERLAP_MS)
    await note("tested", "corrected", by="admin:ada", reason="to see it")
    _, after = await follow_to_the_end(env)
    env.clock.advance(-HOUR_MS)
    await note("tested", "an hour back", by="admin:ada", reason="to see it")
    env.clock.advance(9 * OVERLAP_MS)
    await note("tested", "later", by="admin:ada", reason="to see it")
    while await env.kv.sweep(changes_before=env.kv.now() - 7 * OVERLAP_MS):
        pass
    last, _, place = after.partition(".")
    seen, after = await follow_to_the_end(
        env, f"{last}.another-store:1" if env.kv.engine == "memory" else after
    )
    assert {"an hour back", "later"} <= set(seen)
    assert await follow_to_the_end(env, after) == ([], after)
    assert place


NOTES = (
    ("block", "evil", "admin:ada"),
    ("team created", "crew", "admin:ada"),
    ("block", "worse", "user:ann"),
    ("signed in", "ann", "user:ann"),
)


@pytest.mark.parametrize(
    ("asked", "targets"),
    [
        ({"who": "ada"}, ["crew", "evil"]),
        ({"who": "user:ann"}, ["ann", "worse"]),
        ({"who": "ad"}, []),
        ({"what": "BLOCK"}, ["worse", "evil"]),
        ({"about": "cre"}, ["crew"]),
        ({"about": "to see"}, ["ann", "worse", "crew", "evil"]),
        ({"who": "ann", "what": "block"}, ["worse"]),
        ({"outcome": AuditOutcome.REFUSED}, []),
        ({"outcome": AuditOutcome.DONE, "who": "ann"}, ["ann", "worse"]),
    ],
)
async def test_entries_are_found_by_who_what_and_outcome(env, asked, targets):
    for action, target, by in NOTES:
        await note(action, target, by=by, reason="to see it")
    for limit in (1, 2, 50):
        seen, before = [], None
        while True:
            page = await READ_AUDIT(env, ADA, ReadAudit(before=before, limit=limit, **asked))
            seen += [one.target for one in page.items]
            before = page.before
            if before is None:
                break
        assert seen == targets


async def test_pages_go_forward_and_back_and_to_a_time(env):
    for number in range(7):
        await note("tested", str(number), by="admin:ada", reason="to see it")
        env.clock.advance(HOUR_MS)

    async def targets(**asked):
        page = await READ_AUDIT(env, ADA, ReadAudit(limit=2, **asked))
        return [one.target for one in page.items], page

    latest, page = await targets()
    assert (latest, page.after) == (["6", "5"], None)
    older, page = await targets(before=page.before)
    newer, again = await targets(after=page.after)
    assert (older, newer, again.after) == (["4", "3"], ["6", "5"], None)
    oldest, page = await targets(after="0" * 26)
    assert (oldest, page.before) == (["1", "0"], page.items[-1].id)
    forward, _ = await targets(after=page.after)
    assert forward == ["3", "2"]
    assert (await targets(before=page.before))[0] == []
    until = iso_time(START + 2 * HOUR_MS)
    assert (await targets(until=until))[0] == ["2", "1"]
    assert (await targets(until=until.removesuffix("Z")))[0] == ["2", "1"]
    for bad in (
        {"until": "yesterday"},
        {"before": "x"},
        {"after": "x"},
        {"before": "0" * 26, "after": "0" * 26},
    ):
        with pytest.raises(InvalidInput):
            await targets(**bad)


async def test_a_search_that_finds_little_says_how_to_go_on(env):
    await note("rare", "old", by="admin:ada", reason="to see it")
    for _ in range(3):
        puts = [put for _ in range(2_000) for put in record_audit("common", "x", by="system", reason="r")]
        await env.kv.commit(puts)
    env.clock.advance(HOUR_MS)
    page = await READ_AUDIT(env, ADA, ReadAudit(what="rare"))
    assert (page.items, page.before is not None) == ((), True)
    page = await READ_AUDIT(env, ADA, ReadAudit(what="rare", before=page.before))
    assert ([one.target for one in page.items], page.before) == (["old"], None)


async def test_a_cursor_that_the_store_does_not_know_goes_on_by_ids_from_a_little_earlier(env):
    await note("tested", "long ago", by="admin:ada", reason="to see it")
    env.clock.advance(3 * OVERLAP_MS)
    await note("tested", "before", by="admin:ada", reason="to see it")
    _, after = await follow_to_the_end(env)
    await note("tested", "after", by="admin:ada", reason="to see it")
    last, _, _ = after.partition(".")
    seen, _ = await follow_to_the_end(env, f"{last}.another-store:17")
    assert seen == ["before", "after"]
    for bad in ("nonsense", ".", "a/b.1", f"{last}."):
        with pytest.raises(InvalidInput, match="cursor"):
            await FOLLOW_AUDIT(env, ADA, FollowAudit(after=bad))


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
