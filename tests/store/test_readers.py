"""What is told to an account is read with its rights as they are: changes in the middle neither lose nor leak it."""

import pytest

from tests.support.envs import open_test_env
from tests.support.namespaces import manage
from vskill_core.errors import NotFound
from vskill_platform.domain.people.namespace import Audiences, Everything, Visibility
from vskill_platform.store.people.accounts import Role, create_user
from vskill_platform.store.people.readers import read_as

pytestmark = pytest.mark.anyio


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("memory", tmp_path) as opened:
        await create_user("ann", Role.AUTHOR, by="system", reason="a test")
        yield opened


class Record:
    """Something that moves to another namespace's audience while it is looked at for the first time."""

    def __init__(self, env, *members: str) -> None:
        self.env, self.members = env, members
        self.looks = 0

    async def read(self, audiences: Audiences) -> str:
        assert not isinstance(audiences, Everything)
        self.looks += 1
        if self.looks == 1:
            await manage(self.env, "acme", Visibility.TEAM, *self.members)
        if not any(one.startswith("ns:acme") for one in audiences):
            raise NotFound("There is no such thing.")
        return "found"


async def test_what_was_given_another_audience_in_the_middle_is_found(env):
    record = Record(env, "user:ann")
    assert await read_as("user:ann", record.read) == "found"
    assert record.looks == 2


async def test_whoever_may_not_read_it_is_told_nothing_and_is_not_asked_for_ever(env):
    record = Record(env, "user:bob")
    with pytest.raises(NotFound):
        await read_as("user:ann", record.read)
    assert record.looks <= 2


async def test_what_was_hidden_in_the_middle_is_not_told(env):
    """It was readable when the look began."""
    await manage(env, "acme", Visibility.TEAM, "user:ann")

    async def read(audiences: Audiences) -> str:
        assert not isinstance(audiences, Everything)
        if not any(one.startswith("ns:acme") for one in audiences):
            raise NotFound("There is no such thing.")
        await manage(env, "acme", Visibility.TEAM)
        return "found"

    with pytest.raises(NotFound):
        await read_as("user:ann", read)
