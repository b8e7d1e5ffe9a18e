"""Dead letters as a person meets them: all of them, oldest first, and any of them can be replayed or thrown away."""

import pytest

from tests.support.acting import principal_for
from tests.support.dead_letters import list_dead_letters
from tests.support.envs import open_test_env
from vskill_core.errors import InvalidInput, NotFound, NotPermitted, NotSignedIn
from vskill_platform.actions.operation.dead_letters import (
    DISCARD,
    LIST_LETTERS,
    REPLAY,
    LetterRequest,
    ListLetters,
)
from vskill_platform.actions.principal import Principal
from vskill_platform.domain.messages import Send, task_send
from vskill_platform.ledger.broker.contract import DeliveryEnd, Settlement
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.tasks import read_task

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as env:
        yield env


async def bury(env, sends: list[Send]) -> None:
    await env.broker.send_batch(sends)
    (batch,) = await env.broker.receive(len(sends), 0)
    dead = [Settlement(one.delivery, DeliveryEnd.DEAD_LETTER, reason="why") for one in batch.messages]
    assert all(await env.broker.settle(dead))


async def test_more_letters_than_a_page_holds_are_all_listed_and_the_last_can_be_replayed(env):
    """The queue gives them out in pages of 100; who looks for one must find it on any page."""
    sends = [*(Send(b"%d" % number) for number in range(249)), task_send("demo", "one", 1)]
    await bury(env, sends)
    letters = await list_dead_letters()
    assert [letter.body for letter in letters] == [send.body for send in sends]
    me = principal_for("admin:me")
    first = await LIST_LETTERS(env, me, ListLetters())
    assert (len(first.letters), first.total) == (100, 250)
    second = await LIST_LETTERS(env, me, ListLetters(after=first.after, limit=1000))
    assert [letter.id for letter in (*first.letters, *second.letters)] == [letter.id for letter in letters]
    assert (second.after, second.letters[0].reason, second.letters[0].body) == (None, "why", "100")
    done = await REPLAY(env, me, LetterRequest(letter_id=letters[-1].id))
    assert (done.id, done.run) == ("task:demo:one", 1)
    assert (await read_task("demo", "one"))[0] is not None
    await DISCARD(env, me, LetterRequest(letter_id=letters[120].id))
    left = [letter.id for letter in await list_dead_letters()]
    assert left == [letter.id for letter in letters[:-1] if letter is not letters[120]]
    with pytest.raises(NotFound, match=str(letters[120].id)):
        await REPLAY(env, me, LetterRequest(letter_id=letters[120].id))
    with pytest.raises(NotFound, match=str(letters[120].id)):
        await DISCARD(env, me, LetterRequest(letter_id=letters[120].id))
    with pytest.raises(InvalidInput, match="not a message of this platform"):
        await REPLAY(env, me, LetterRequest(letter_id=letters[0].id))
    audited = [(one.action, one.target, one.by) for one in (await list_audit()).items]
    assert audited == [
        ("dead letter discarded", str(letters[120].id), "admin:me"),
        ("dead letter replayed", str(letters[-1].id), "admin:me"),
    ]


async def test_dead_letters_are_for_admins(env):
    for who, refusal in (
        (Principal(), NotSignedIn),
        (principal_for("user:ann"), NotPermitted),
        (Principal("rob", Role.REVIEWER), NotPermitted),
    ):
        with pytest.raises(refusal):
            await LIST_LETTERS(env, who, ListLetters())
        for action in (REPLAY, DISCARD):
            with pytest.raises(refusal):
                await action(env, who, LetterRequest(letter_id=1))
