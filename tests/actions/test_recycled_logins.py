"""A login can change hands. What somebody owns because of a login is bound to the identity that proved it first, and
where an admin made the namespace, to nobody."""

import asyncio
from typing import Any

import msgspec
import pytest

from tests.support.acting import controls, principal_for
from tests.support.envs import active_env
from tests.support.manual_clock import ManualClock
from tests.support.people import make_account
from tests.support.shelf import open_shelf
from vskill_client.wire.base import NoParameters
from vskill_client.wire.skills import SkillRequest
from vskill_core.errors import NotFound, NotPermitted
from vskill_core.identity import normalise
from vskill_platform.actions.action import Action
from vskill_platform.actions.people.namespace_policy import CHANGE_VISIBILITY, ChangeVisibility
from vskill_platform.actions.people.namespaces import (
    ADD_MEMBER,
    LIST_NAMESPACES,
    REMOVE_MEMBER,
    SHOW_NAMESPACE,
    AddMember,
    NamespaceRequest,
    RemoveMember,
)
from vskill_platform.actions.people.owners import LIST, ListOwned
from vskill_platform.actions.principal import resolve
from vskill_platform.actions.skills.versions import SHOW_SKILL
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import Member, Namespace, NamespaceRole, Visibility
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.github_accounts import PROOF_MS, account_of_github
from vskill_platform.store.people.owners import find_maintainers, role_in

pytestmark = pytest.mark.anyio

WHY = "a test"
REPO = "https://github.com/ghcorp/tools"
A, B = principal_for("user:ghcorp"), principal_for("user:ghcorp-2")
EVE = principal_for("admin:eve")


@pytest.fixture
async def shelf(tmp_path):
    async with open_shelf(tmp_path, clock=ManualClock(), rate_limits="off") as opened:
        await make_account(opened.env, "eve", Role.ADMIN)
        with active_env(opened.env):
            yield opened


async def hide(shelf, by) -> None:
    change = ChangeVisibility(name="ghcorp", to=Visibility.TEAM, reason=WHY)
    await CHANGE_VISIBILITY(shelf.env, by, change)


async def add(shelf, by, member: str) -> None:
    await ADD_MEMBER(
        shelf.env, by, AddMember(name="ghcorp", member=member, role=NamespaceRole.OWNER, reason=WHY)
    )


async def reads(shelf, by, skill: str) -> bool:
    try:
        await SHOW_SKILL(shelf.env, await resolve(by), SkillRequest(skill=skill))
    except NotFound:
        return False
    return True


async def require_nothing(shelf, by, skill: str) -> None:
    """That somebody is no owner, and does not become one."""
    env, account = shelf.env, str(by.account)
    assert await role_in(account, "ghcorp") is None
    assert not await controls(account, normalise(REPO))
    assert account not in await find_maintainers(normalise(REPO))
    listed = (await LIST_NAMESPACES(env, by, NoParameters())).namespaces
    assert "ghcorp" not in [one.name for one in listed]
    assert (await LIST(env, by, ListOwned())).github_login is None
    attempts: tuple[tuple[Action[Any, Any], NamespaceRequest], ...] = (
        (SHOW_NAMESPACE, NamespaceRequest(name="ghcorp")),
        (ADD_MEMBER, AddMember(name="ghcorp", member=account, role=NamespaceRole.OWNER, reason=WHY)),
        (REMOVE_MEMBER, RemoveMember(name="ghcorp", member="ghcorp", reason=WHY)),
        (CHANGE_VISIBILITY, ChangeVisibility(name="ghcorp", to=Visibility.INTERNAL, reason=WHY)),
    )
    for action, request in attempts:
        with pytest.raises(NotPermitted):
            await action(env, by, request)
    assert not await reads(shelf, by, skill)


async def test_whoever_takes_a_login_over_gets_nothing_of_its_private_namespace(shelf):
    """A made it private and published; A renamed itself; B took the login and signs in."""
    assert (await account_of_github("1", "ghcorp")).name == "ghcorp"
    skill = (await shelf.publish("lint", repo=REPO, submitter="ghcorp")).canonical
    await hide(shelf, A)
    await account_of_github("1", "ghcorp-renamed")
    assert (await account_of_github("2", "ghcorp")).name == "ghcorp-2"
    await require_nothing(shelf, B, skill)
    assert await role_in("ghcorp", "ghcorp") is NamespaceRole.OWNER and await reads(shelf, A, skill)


@pytest.mark.parametrize(
    "make", [hide, lambda shelf, by: add(shelf, by, "eve")], ids=["hidden", "given away"]
)
async def test_a_stranger_with_the_login_of_what_an_admin_made_gets_nothing(shelf, make):
    skill = (await shelf.publish("lint", repo=REPO)).canonical
    await make(shelf, EVE)
    if make is not hide:
        await hide(shelf, EVE)
    assert (await account_of_github("2", "ghcorp")).name == "ghcorp"
    await require_nothing(shelf, A, skill)


async def test_a_login_stays_with_the_identity_that_proved_it_first_whoever_has_it_now(shelf):
    await account_of_github("1", "ghcorp")
    await account_of_github("1", "ghcorp-renamed")
    await account_of_github("2", "ghcorp")
    # The repositories are somebody else's now, and whose, the registry does not decide by itself.
    assert not await controls("ghcorp", normalise(REPO)) and not await controls("ghcorp-2", normalise(REPO))
    await hide(shelf, EVE)
    assert await role_in("ghcorp", "ghcorp") is None and await role_in("ghcorp-2", "ghcorp") is None
    await account_of_github("1", "GHCorp")
    shelf.env.clock.advance(PROOF_MS - 1)
    assert await controls("ghcorp", normalise("https://github.com/ghcorp/other")) is False, (
        "it is managed now"
    )


async def test_a_proof_is_good_for_a_while_after_each_sign_in(shelf):
    await account_of_github("1", "ghcorp")
    shelf.env.clock.advance(PROOF_MS - 1)
    await account_of_github("1", "GHCorp")
    shelf.env.clock.advance(PROOF_MS - 1)
    assert await controls("ghcorp", normalise(REPO))
    shelf.env.clock.advance(1)
    assert not await controls("ghcorp", normalise(REPO))


async def test_of_two_who_prove_a_login_at_once_one_is_bound_to_it(shelf):
    await asyncio.gather(account_of_github("1", "ghcorp"), account_of_github("2", "ghcorp"))
    accounts = [name for name in ("ghcorp", "ghcorp-1", "ghcorp-2") if await controls(name, normalise(REPO))]
    assert len(accounts) == 1


async def test_two_browsers_of_one_person_make_one_account(shelf):
    made = await asyncio.gather(*[account_of_github("1", "ghcorp") for _ in range(4)])
    assert {one.name for one in made} == {"ghcorp"}


async def test_what_an_admin_does_to_a_proved_namespace_leaves_it_to_its_owner_in_sight(shelf):
    await account_of_github("1", "ghcorp")
    await add(shelf, EVE, "eve")
    shown = await SHOW_NAMESPACE(shelf.env, A, NamespaceRequest(name="ghcorp"))
    assert [(one.member, one.how) for one in shown.members] == [("eve", "added"), ("ghcorp", "sign-in")]
    await REMOVE_MEMBER(shelf.env, EVE, RemoveMember(name="ghcorp", member="ghcorp", reason=WHY))
    assert await role_in("ghcorp", "ghcorp") is None, "its members alone say who owns it"


async def test_who_owns_it_by_name_is_shown_until_its_members_say_it(shelf):
    await account_of_github("1", "ghcorp")
    assert (await SHOW_NAMESPACE(shelf.env, A, NamespaceRequest(name="ghcorp"))).owner_by_name == "ghcorp"
    await hide(shelf, A)
    shown = await SHOW_NAMESPACE(shelf.env, A, NamespaceRequest(name="ghcorp"))
    assert (shown.owner_by_name, [one.member for one in shown.members]) == (None, ["ghcorp"])


# Records that no sign-in of today writes.


async def test_a_login_that_was_taken_over_before_gives_no_right_to_a_private_namespace(shelf):
    await account_of_github("1", "ghcorp")
    skill = (await shelf.publish("lint", repo=REPO, submitter="ghcorp")).canonical
    await hide(shelf, A)
    await account_of_github("2", "ghcorp")
    await shelf.env.kv.put(keys.github("login", "ghcorp"), b'{"account":"ghcorp-2","id":"2","at":0}')
    await require_nothing(shelf, B, skill)


async def test_who_added_a_member_to_what_it_proved_before_still_owns_it(shelf):
    await account_of_github("1", "ghcorp")
    reader = Member("user:eve", NamespaceRole.READER, 0, "added", by="user:ghcorp")
    record = Namespace("ghcorp", members=(reader,))
    await shelf.env.kv.put(keys.namespace("ghcorp"), msgspec.json.encode(record))
    await account_of_github("2", "other")
    # Whatever raises the version of the whole.
    await ADD_MEMBER(shelf.env, EVE, AddMember(name="x", member="eve", role=NamespaceRole.OWNER, reason=WHY))
    assert await role_in("ghcorp", "ghcorp") is NamespaceRole.OWNER
