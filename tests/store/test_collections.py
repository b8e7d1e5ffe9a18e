"""Collections: bounded, named once, and written once whatever the outcome of a commit looked like."""

import msgspec
import pytest

from tests.support.envs import active_env, open_test_env
from tests.support.faults import dying_once
from vskill_core.errors import InvalidInput, NotFound
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.skills.collections import (
    MOST_DESCRIPTION,
    MOST_SKILLS,
    MOST_TITLE,
    add_skills,
    create_collection,
    delete_collection,
    get_collection,
    list_collections,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("memory", tmp_path) as opened:
        yield opened


async def made(name: str = "ours", **texts: str):
    return await create_collection(name, by="admin:eve", reason="for the team", **texts)


async def audited() -> list[str]:
    return [entry.action for entry in (await list_audit()).items]


async def test_an_unknown_outcome_makes_one_collection_and_deletes_it_once(env):
    with active_env(env, kv=dying_once(env.kv)):
        assert await made(title="Ours") == await get_collection("ours", audiences=EVERYTHING)
    with active_env(env, kv=dying_once(env.kv)):
        await delete_collection("ours", by="admin:eve", reason="empty")
    assert (await list_collections(audiences=EVERYTHING)).items == ()
    assert await audited() == ["collection deleted", "collection created"]
    with pytest.raises(NotFound):
        await delete_collection("ours", by="admin:eve", reason="once more")


@pytest.mark.parametrize(("field", "most"), [("title", MOST_TITLE), ("description", MOST_DESCRIPTION)])
async def test_a_text_that_is_too_long_is_refused_with_its_field_and_the_fix(env, field, most):
    with pytest.raises(InvalidInput) as caught:
        await made(**{field: "x" * (most + 1)})
    assert caught.value.field == field and str(most) in caught.value.fix
    assert (await list_collections(audiences=EVERYTHING)).items == ()
    await made(**{field: "x" * most})


async def test_a_collection_holds_a_bounded_number_of_skills(env):
    held = tuple(f"ann/tools/skill-{number}" for number in range(MOST_SKILLS - 2))
    nearly_full = msgspec.structs.replace(await made(), skills=held)
    await env.kv.put(keys.collection("ours"), msgspec.json.encode(nearly_full))
    await add_skills("ours", ["ann/tools/one", "ann/tools/two"], by="admin:eve", reason="good")
    with pytest.raises(InvalidInput, match=f"at most {MOST_SKILLS}") as caught:
        await add_skills("ours", ["ann/tools/three"], by="admin:eve", reason="good too")
    assert caught.value.field == "skills"
    again = await add_skills("ours", ["ann/tools/two"], by="admin:eve", reason="it is in it already")
    assert again.skills[-2:] == ("ann/tools/one", "ann/tools/two")
