"""Accounts, teams and upload namespaces are one name space: an account owns `upload~` and its own name, so nobody may
become the account of a name under which others keep their uploads."""

import asyncio

import pytest

from tests.support.acting import principal_for
from tests.support.envs import open_test_env, run_until_quiet, skill_files
from vskill_core.errors import InvalidInput
from vskill_platform.actions.people.namespaces import ADD_MEMBER, AddMember
from vskill_platform.actions.people.teams import CREATE_TEAM, ExplainedTeam
from vskill_platform.actions.principal import OPERATOR, resolve
from vskill_platform.actions.submissions.intake import upload_files
from vskill_platform.domain.people.namespace import NamespaceRole
from vskill_platform.domain.submissions.submission import EntryPoint
from vskill_platform.intake.submit import submit_upload
from vskill_platform.store.people.accounts import NameTaken, Role, User, create_user, read_user
from vskill_platform.store.people.github_accounts import account_of_github
from vskill_platform.store.people.namespaces import read_team
from vskill_platform.store.people.owners import role_in

pytestmark = pytest.mark.anyio

WHY = "a test"
TEAMS = "upload~platform"
EVE = principal_for("admin:eve")


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as opened:
        await create_user("mia", Role.AUTHOR, by="system", reason=WHY)
        yield opened


async def make_account(name: str) -> User:
    return await create_user(name, Role.AUTHOR, by="system", reason=WHY)


async def make_team(env, name: str) -> None:
    await CREATE_TEAM(env, EVE, ExplainedTeam(name=name, reason=WHY))


async def make_namespace(env, name: str) -> None:
    owner = AddMember(name=f"upload~{name}", member="mia", role=NamespaceRole.OWNER, reason=WHY)
    await ADD_MEMBER(env, EVE, owner)


async def test_nobody_becomes_the_account_of_a_namespace_without_a_record_that_holds_skills(env):
    await submit_upload(skill_files("tidy"), namespace="platform", slug="tidy")
    await run_until_quiet(env)
    with pytest.raises(NameTaken, match="were uploaded"):
        await make_account("platform")
    assert (await account_of_github("7", "platform")).name == "platform-7"
    await make_account("plat")


async def test_nobody_becomes_the_account_of_a_teams_name_or_of_its_uploads(env):
    await make_namespace(env, "platform")
    await make_team(env, "crew")
    for number, name in (("7", "platform"), ("8", "crew")):
        with pytest.raises(NameTaken, match="already exists") as refused:
            await make_account(name)
        assert refused.value.field == "name" and refused.value.fix
        assert (await account_of_github(number, name)).name == f"{name}-{number}"


async def test_no_team_gets_the_name_of_an_account(env):
    with pytest.raises(InvalidInput, match="The account 'mia' already exists") as refused:
        await make_team(env, "mia")
    assert refused.value.field == "name" and refused.value.fix


async def test_a_team_keeps_its_uploads_under_its_own_name(env):
    await make_team(env, "platform")
    await make_namespace(env, "platform")
    assert await role_in("mia", TEAMS) is NamespaceRole.OWNER


async def test_of_an_account_and_what_has_its_name_one_is_made(env):
    """However they race, nobody is the account of a name under which there is a team or somebody else's uploads."""
    names = [f"name-{number}" for number in range(12)]
    makers = [
        made
        for name in names
        for made in (make_team(env, name), make_account(name), make_namespace(env, name))
    ]
    await asyncio.gather(*makers, return_exceptions=True)
    for name in names:
        account = (await read_user(name))[0] is not None
        team = (await read_team(name))[0] is not None
        owned_by_other = await role_in("mia", f"upload~{name}") is not None
        assert account or team or owned_by_other
        assert not (account and team), name
        if account and owned_by_other:
            # The account was first: it owns its namespace, and an admin added another owner to it.
            assert await role_in(name, f"upload~{name}") is NamespaceRole.OWNER, name


async def test_nobody_becomes_the_account_of_what_the_operator_uploaded(env):
    operator = await resolve(OPERATOR)
    for namespace in ("Platform", "platform", "mia", ""):
        files = skill_files("demo", namespace)
        done = await upload_files(operator, files, namespace=namespace, slug="demo", source=EntryPoint.CLI)
        assert done.submission is not None
    with pytest.raises(NameTaken, match="namespace 'upload~platform'"):
        await make_account("platform")
    assert await role_in("mia", "upload~mia") is NamespaceRole.OWNER
