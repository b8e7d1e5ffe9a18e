"""What people type finds what they mean, as often as was measured, on every engine."""

import pytest

from tests.search.judged import Shares, fill, judge, load_queries, load_skills
from tests.support.envs import open_test_env
from vskill_platform.domain.audience import PUBLIC_ONLY
from vskill_platform.store.catalogue import search_skills

pytestmark = pytest.mark.anyio

#: Measured with the search of before: each engine had an order of its own, words were compared letter by letter.
BEFORE = {
    "memory": Shares(43.3, 48.3),
    "sqlite": Shares(43.3, 48.3),
    "postgresql": Shares(43.3, 48.3),
}


def test_the_judged_queries_name_skills_of_the_registry():
    skills = [skill.canonical for skill in load_skills()]
    queries = load_queries()
    assert len(set(skills)) == len(skills) >= 150
    assert len({query.text for query in queries}) == len(queries) == 60
    assert {name for query in queries for name in query.expected} <= set(skills)


@pytest.mark.parametrize("engine", ["memory", "sqlite", "postgresql"])
async def test_judged_queries_find_what_was_meant(engine, tmp_path):
    async with open_test_env(engine, tmp_path) as env:
        await fill(env.kv, load_skills())

        async def search(text: str) -> list[str]:
            hits = await search_skills(text, audiences=PUBLIC_ONLY)
            return [skill.canonical for skill in hits.items]

        found = await judge(load_queries(), search)
    shares = found.shares
    print(f"{engine}: {shares.first} % in the first place, {shares.first_three} % in the first three")
    for text, instead in found.missed.items():
        print(f"  {text!r} gave {instead}")
    assert shares == BEFORE[engine]
