"""What was withdrawn, as everybody reads it: the signed list, its feeds, the checks of clients, and the page."""

import asyncio
import base64
import json
import xml.etree.ElementTree as ET  # our own documents only
from datetime import UTC, datetime
from typing import Any

import httpx2
import msgspec
import pytest

from tests.support.acting import delete, restore, take_down, unyank, yank
from tests.support.counting_kv import CountingKV
from tests.support.envs import active_env, run_until_quiet
from tests.support.manual_clock import ManualClock
from tests.support.shelf import open_shelf
from vskill_core.errors import AttestationInvalid
from vskill_core.revocation_list import DAY_MS, PAYLOAD_TYPE
from vskill_core.signing_keys import public_from_jwks
from vskill_core.verification import open_revocation_list
from vskill_platform.actions.people.namespace_policy import CHANGE_VISIBILITY, ChangeVisibility
from vskill_platform.actions.people.namespaces import ADD_MEMBER, AddMember
from vskill_platform.actions.principal import OPERATOR, Principal
from vskill_platform.actions.recall.blocklist import BLOCK, LIFT, BlockSomething, LiftBlock
from vskill_platform.domain.blocklist import TargetKind
from vskill_platform.domain.people.namespace import NamespaceRole, Visibility
from vskill_platform.machine.process_cache import KeptReads
from vskill_platform.signing.key_ring import MemoryKeys
from vskill_platform.store.people.accounts import Role, create_user, read_user
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

LIST = "/.well-known/vskill-revocations.json"
ADMIN = Principal("eve", Role.ADMIN)
LINT = "acme/tools/lint"
ATOM = "{http://www.w3.org/2005/Atom}"


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture(params=["memory", "sqlite"])
async def shelf(request, tmp_path, clock):
    async with open_shelf(tmp_path, request.param, clock=clock, rate_limits="off") as opened:
        yield opened


async def take_lint_down(shelf, *, version: str = "1.0.0") -> None:
    with active_env(shelf.env):
        await take_down(LINT, version, by="admin:eve", reason="complaints")


async def block(shelf, kind: TargetKind, target: str, **more) -> None:
    await BLOCK(shelf.env, ADMIN, BlockSomething(kind=kind, target=target, reason="steals keys", **more))


async def payload_of(shelf, path: str = LIST, **options) -> dict[str, Any]:
    answer = await shelf.client.get(path, **options)
    assert answer.status_code == 200, answer.text
    keys = public_from_jwks((await shelf.client.get("/.well-known/vskill-keys.json")).content)
    open_revocation_list(answer.content, keys)
    envelope = answer.json()
    assert envelope["payloadType"] == PAYLOAD_TYPE
    found: dict[str, Any] = json.loads(base64.b64decode(envelope["payload"]))
    return found


def moment(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


async def test_the_list_names_every_withdrawn_version_by_digest_and_skill(shelf):
    await shelf.publish("lint", "one")
    skill = await shelf.publish("lint", "two")
    await shelf.publish("other", "one", repo="https://github.com/zoo/tools")
    await block(shelf, TargetKind.NAME, "other", severity="critical", threat_type="credential-theft")
    await take_lint_down(shelf)
    found = await payload_of(shelf)
    assert list(found) == ["version", "registry", "serial", "issuedAt", "expiresAt", "entries", "scope"]
    assert (found["version"], found["scope"]) == (1, "everybody")
    entries = found["entries"]
    assert entries == sorted(entries, key=lambda one: (one["digest"], one["skill"]))
    lint = next(one for one in entries if one["skill"] == LINT)
    assert list(lint) == [
        *("skill", "version", "digest", "contentHash", "archives", "status"),
        *("threatType", "severity", "reason", "since", "replacement"),
    ]
    assert (lint["version"], lint["status"], lint["reason"]) == ("1.0.0", "taken-down", "complaints")
    assert lint["replacement"] == {"version": "1.0.1", "digest": skill.current_digest}
    other = next(one for one in entries if one["skill"] == "zoo/tools/other")
    facts = [other[name] for name in ("status", "severity", "threatType", "replacement")]
    assert facts == ["blocked", "critical", "credential-theft", None]
    old = await shelf.client.get(f"/api/v1/skills/{LINT}/archive?version=1.0.1")
    assert old.status_code == 200 and set(lint["archives"]) == {"zip", "tarGz"}


async def test_every_process_gives_the_same_bytes_for_a_serial_and_a_day(tmp_path, clock):
    async with (
        open_shelf(tmp_path, "sqlite", clock=clock) as one,
        open_shelf(tmp_path, "sqlite", clock=clock) as two,
    ):
        await one.publish("lint", "one")
        await take_lint_down(one)
        first, second = [await shelf.client.get(LIST) for shelf in (one, two)]
        assert first.content == second.content and first.headers["etag"] == second.headers["etag"]
        again = await two.client.get(LIST, headers={"if-none-match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        with active_env(two.env):
            await restore(LINT, by="admin:eve", reason="a mistake")
        assert (await payload_of(one))["entries"] == (await payload_of(two))["entries"] == []


async def test_the_list_is_issued_by_its_commit_or_by_the_day_and_holds_for_a_week(shelf, clock):
    await shelf.publish("lint", "one")
    clock.advance(1_234)
    written = shelf.env.kv.now()
    await take_lint_down(shelf)
    first = await payload_of(shelf)
    assert moment(first["issuedAt"]) == written
    clock.advance(60_000)
    assert await payload_of(shelf) == first
    clock.advance(DAY_MS)
    later = await payload_of(shelf)
    now = shelf.env.kv.now()
    assert moment(later["issuedAt"]) == now - now % DAY_MS
    assert moment(later["expiresAt"]) - moment(later["issuedAt"]) == 7 * DAY_MS
    assert {**later, "issuedAt": "", "expiresAt": ""} == {**first, "issuedAt": "", "expiresAt": ""}


async def test_a_list_without_any_entry_is_signed_too(shelf):
    found = await payload_of(shelf)
    assert (found["serial"], found["entries"]) == (shelf.env.kv.now(), [])
    stranger = await MemoryKeys().public_keys()
    with pytest.raises(AttestationInvalid):
        open_revocation_list((await shelf.client.get(LIST)).content, stranger)


async def test_the_list_follows_every_withdrawal_of_another_process(tmp_path, clock):
    """What a process keeps is brought up to date by the events, whoever wrote them."""
    async with (
        open_shelf(tmp_path, "sqlite", clock=clock) as one,
        open_shelf(tmp_path, "sqlite", clock=clock) as two,
    ):
        await one.publish("lint", "one")
        await one.publish("lint", "two")
        assert (await payload_of(two))["entries"] == []
        await own(one)
        for act, wanted in (
            (lambda: yank(LINT, "1.0.0", account="eve", reason="broken"), ["yanked"]),
            (lambda: take_down(LINT, "1.0.1", by="admin:eve", reason="bad"), ["taken-down", "yanked"]),
            (lambda: restore(LINT, "1.0.1", by="admin:eve", reason="good"), ["yanked"]),
            (lambda: unyank(LINT, "1.0.0", account="eve", reason="fixed"), []),
            (lambda: delete(LINT, account="eve", reason="no time"), ["deleted", "deleted"]),
        ):
            with active_env(one.env):
                await act()
                await run_until_quiet(one.env)
            told = await payload_of(two)
            assert sorted(entry["status"] for entry in told["entries"]) == wanted
        assert told == await payload_of(one)


async def own(shelf, account: str = "eve") -> None:
    """The account owns the namespace from now on."""
    with active_env(shelf.env):
        if (await read_user(account))[0] is None:
            await create_user(account, Role.AUTHOR, by="system", reason="a test")
    member = AddMember(name="acme", member=account, role=NamespaceRole.OWNER, reason="a test")
    await ADD_MEMBER(shelf.env, OPERATOR, member)


async def test_hidden_skills_are_in_the_list_of_their_namespace_only(shelf):
    await shelf.publish("lint", "one")
    await take_lint_down(shelf)
    member, other = await shelf.token("mia"), await shelf.token("zoe")
    for visibility, anonymous, account in ((Visibility.INTERNAL, 0, 1), (Visibility.TEAM, 0, 0)):
        await CHANGE_VISIBILITY(
            shelf.env, ADMIN, ChangeVisibility(name="acme", to=visibility, reason="a test")
        )
        assert len((await payload_of(shelf))["entries"]) == anonymous
        assert len((await payload_of(shelf, headers=other))["entries"]) == account
    await own(shelf, "mia")
    own_list = f"{LIST}?namespace=acme"
    assert len((await payload_of(shelf, own_list, headers=member))["entries"]) == 1
    assert (await payload_of(shelf, headers=member))["entries"] == []
    assert (await payload_of(shelf, own_list, headers=other))["entries"] == []
    assert (await payload_of(shelf, own_list))["entries"] == []
    private = await shelf.client.get(own_list, headers=member)
    assert private.headers["cache-control"] == "private, no-cache"
    feed = (await shelf.client.get("/api/v1/revocations")).json()
    assert (feed["events"], feed["after"], feed["hasMore"]) == ([], 0, False)


async def test_the_feeds_tell_what_happened_in_its_order(shelf, clock):
    await shelf.publish("lint", "one")
    await shelf.publish("lint", "two")
    first = (await shelf.client.get("/api/v1/revocations")).json()["serial"]
    await take_lint_down(shelf)
    clock.advance(1)
    await block(shelf, TargetKind.NAME, "lint")
    clock.advance(1)
    await LIFT(shelf.env, ADMIN, LiftBlock(kind=TargetKind.NAME, target="lint", reason="a mistake"))
    told = (await shelf.client.get("/api/v1/revocations")).json()
    assert [(one["type"], [each["version"] for each in one["versions"]]) for one in told["events"]] == [
        ("skill.withdrawn", ["1.0.0"]),
        ("skill.withdrawn", ["1.0.1"]),
        ("skill.restored", ["1.0.1"]),
    ]
    now = shelf.env.kv.now()
    assert [one["serial"] for one in told["events"]] == [now - 2, now - 1, now]
    assert (told["after"], told["serial"], told["hasMore"]) == (now, first + 1, False)
    rest = (await shelf.client.get(f"/api/v1/revocations?after={now - 1}")).json()
    assert rest["events"] == told["events"][2:]
    assert (await shelf.client.get(f"/api/v1/revocations?after={now}")).json()["events"] == []
    assert (await shelf.client.get("/api/v1/revocations?after=-1")).status_code == 400
    atom = ET.fromstring((await shelf.client.get("/revocations.xml")).content)
    titles = [entry.findtext(f"{ATOM}title") for entry in atom.findall(f"{ATOM}entry")]
    assert titles == [f"{LINT} 1.0.1: restored", f"{LINT} 1.0.1: withdrawn", f"{LINT} 1.0.0: withdrawn"]
    later = ET.fromstring((await shelf.client.get(f"/revocations.xml?after={now - 1}")).content)
    assert len(later.findall(f"{ATOM}entry")) == 1


@pytest.mark.parametrize("way", ["block", "take-down"])
@pytest.mark.parametrize("known_by", ["version", "digest", "hash", "name and hash"])
async def test_a_check_knows_a_withdrawn_version_by_number_digest_and_hash(shelf, way, known_by):
    old = await shelf.publish("lint", "one")
    new = await shelf.publish("lint", "two")
    if way == "block":
        await block(shelf, TargetKind.DIGEST, str(old.current_digest))
    else:
        await take_lint_down(shelf)
    asked = {
        "version": {"name": LINT, "version": "1.0.0"},
        "digest": {"hash": old.current_digest},
        "hash": {"hash": f"sha256:{old.content_hash}"},
        "name and hash": {"name": "lint", "hash": old.content_hash},
    }[known_by]
    told = (await shelf.client.get("/api/v1/blocklist/check", params=asked)).json()
    assert (told["blocked"], told["revoked"], told["recall"]["replacement"]) == (True, True, "1.0.1")
    assert told["recall"]["status"] == ("blocked" if way == "block" else "taken-down")
    assert told["recall"]["since"].endswith("Z") and told["recall"]["reason"]
    entry = told["entry"]
    assert (entry["digest"], entry["contentHash"]) == (old.current_digest, old.content_hash)
    assert entry["threatType"] and entry["severity"]
    fine = {"name": LINT, "version": "1.0.1", "hash": str(new.content_hash)}
    told = (await shelf.client.get("/api/v1/blocklist/check", params=fine)).json()
    assert (told["blocked"], told["revoked"]) == (False, False) and "entry" not in told


async def test_updates_are_told_by_digest_and_a_yanked_version_is_a_warning(shelf):
    old = await shelf.publish("lint", "one")
    await shelf.publish("lint", "two")
    asked = {"skills": [{"name": LINT, "currentVersion": "9.9.9", "digest": old.current_digest}]}
    await take_lint_down(shelf)
    (told,) = (await shelf.client.post("/api/v1/skills/check-updates", json=asked)).json()["results"]
    assert (told["revoked"], told["recall"]["status"], told["latest"]) == (True, "taken-down", "1.0.1")
    with active_env(shelf.env):
        await restore(LINT, "1.0.0", by="admin:eve", reason="fine")
    await own(shelf)
    with active_env(shelf.env):
        await yank(LINT, "1.0.0", account="eve", reason="broken")
    (told,) = (await shelf.client.post("/api/v1/skills/check-updates", json=asked)).json()["results"]
    assert (told["revoked"], told["recall"]["status"]) == (False, "yanked")
    assert told["recall"]["replacement"] == "1.0.1"


async def test_what_was_blocked_unpublished_is_found_and_says_so(shelf):
    place = "https://github.com/evil/kit/tree/main/skills/stealer"
    await block(shelf, TargetKind.PLACE, place, ahead=True)
    found = (await shelf.client.get("/api/v1/blocklist?q=stealer")).json()
    assert [(one["skillName"], one["published"]) for one in found["entries"]] == [("stealer", False)]
    assert (await shelf.client.get("/api/v1/blocklist?q=nothing-like-it")).json()["entries"] == []
    for path in ("/revocations?q=stealer", "/skills?q=stealer"):
        page = (await shelf.client.get(path)).text
        assert "ever published here" in page and "steals keys" in page, path
    await shelf.publish("lint", "one")
    await block(shelf, TargetKind.NAME, "lint")
    (entry,) = (await shelf.client.get("/api/v1/blocklist?q=lint")).json()["entries"]
    assert entry["published"] is True


async def test_the_page_shows_what_was_withdrawn_and_what_to_install(shelf):
    empty = await shelf.client.get("/revocations")
    assert empty.status_code == 200 and "Nothing was withdrawn" in empty.text
    await shelf.publish("lint", "one")
    await shelf.publish("lint", "two")
    await take_lint_down(shelf)
    page = (await shelf.client.get("/revocations")).text
    assert LINT in page and "complaints" in page and "Taken down" in page and "1.0.1" in page
    assert "No recall matches" in (await shelf.client.get("/revocations?q=elsewhere")).text


async def test_a_registry_without_a_key_says_that_it_signs_no_list(shelf):
    env = msgspec.structs.replace(shelf.env, signing=None)
    transport = httpx2.ASGITransport(create_app(env))
    async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as client:
        answer = await client.get(LIST)
    assert answer.status_code == 404 and "no signing key" in answer.text


async def test_first_lists_are_derived_once_for_many_who_ask(shelf):
    """One list at a time, and one walk over the skills for all who wait."""
    await shelf.publish("lint", "one")
    await take_lint_down(shelf)
    kv = CountingKV(shelf.env.kv)
    env = msgspec.structs.replace(shelf.env, kv=kv, kept=KeptReads())
    transport = httpx2.ASGITransport(create_app(env))
    async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as client:
        answers = await asyncio.gather(*(client.get(LIST) for _ in range(5)))
    assert len({one.content for one in answers}) == 1
    assert kv.calls["select"] == 1


def test_times_of_a_list_are_in_utc():
    assert moment("2026-01-01T00:00:00.000Z") == int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)
