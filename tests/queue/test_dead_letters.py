"""Dead letters as a person meets them: all of them, oldest first, and any of them can be replayed or thrown away."""

import pytest

from tests.support.acting import principal_for
from tests.support.envs import open_test_env
from vskill_platform.actions.dead_letters import replay_dead_letter
from vskill_platform.broker.contract import Outcome, Settlement
from vskill_platform.domain.errors import NotFound
from vskill_platform.domain.messages import Send, task_send
from vskill_platform.queue.dead_letters import discard_dead_letter, list_dead_letters
from vskill_platform.store.audit import list_audit
from vskill_platform.store.tasks import read_task
from vskill_platform.worker_context import require_env

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as env:
        yield env


async def bury(env, sends: list[Send]) -> None:
    await env.broker.send_batch(sends)
    (batch,) = await env.broker.receive(len(sends), 0)
    dead = [Settlement(one.delivery, Outcome.DEAD_LETTER, reason="why") for one in batch.messages]
    assert all(await env.broker.settle(dead))


async def test_more_letters_than_a_page_holds_are_all_listed_and_the_last_can_be_replayed(env):
    """The queue gives them out in pages of 100; who looks for one must find it on any page."""
    sends = [*(Send(b"%d" % number) for number in range(249)), task_send("demo", "one", 1)]
    await bury(env, sends)
    letters = await list_dead_letters()
    assert [letter.body for letter in letters] == [send.body for send in sends]
    assert "run 1" in await replay_dead_letter(require_env(), principal_for("admin:me"), letters[-1].id)
    assert (await read_task("demo", "one"))[0] is not None
    await discard_dead_letter(letters[120].id, by="admin:me")
    left = [letter.id for letter in await list_dead_letters()]
    assert left == [letter.id for letter in letters[:-1] if letter is not letters[120]]
    with pytest.raises(NotFound, match=str(letters[120].id)):
        await replay_dead_letter(require_env(), principal_for("admin:me"), letters[120].id)
    audited = [(one.action, one.target, one.by) for one in (await list_audit()).items]
    assert audited == [
        ("dead letter discarded", str(letters[120].id), "admin:me"),
        ("dead letter replayed", str(letters[-1].id), "admin:me"),
    ]
