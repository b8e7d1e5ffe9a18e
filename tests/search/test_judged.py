"""What people type finds what they mean, as often as was measured, on every engine."""

import msgspec
import pytest

from tests.search.judged import LATER, LATEST, Shares, fill, judge, load_queries, load_skills
from tests.support.envs import open_test_env
from vskill_platform.domain import keys
from vskill_platform.domain.audience import PUBLIC_ONLY
from vskill_platform.domain.skills.catalogue import Filter
from vskill_platform.domain.skills.spelling import Vocabulary
from vskill_platform.records import decode
from vskill_platform.store.skills.catalogue import count_found, search_skills
from vskill_platform.store.skills.reputation import refresh_standing
from vskill_platform.store.skills.vocabulary import VocabularyProgress, follow_words, write_vocabulary

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

#: Measured with the search of before: each engine had an order of its own, words were compared letter by letter.
BEFORE = Shares(43.3, 48.3)
#: Measured with the search of now; every engine gives the same.
NOW = Shares(100.0, 100.0)
#: Queries that nobody who wrote the search had seen, as it was when they were written: what to expect of new ones.
WHEN_WRITTEN = {LATER: Shares(70.0, 80.0), LATEST: Shares(85.0, 90.0)}


def test_the_judged_queries_name_skills_of_the_registry():
    skills = [skill.canonical for skill in load_skills()]
    queries = load_queries()
    assert len(set(skills)) == len(skills) >= 150
    assert len({query.text for query in queries}) == len(queries) == 60
    later = (*load_queries(LATER), *load_queries(LATEST))
    assert len({query.text for query in (*queries, *later)}) == 100
    assert {name for query in (*queries, *later) for name in query.expected} <= set(skills)


@pytest.fixture
async def env_with_skills(tmp_path):
    async with open_test_env("memory", tmp_path) as env:
        await fill(env.kv, load_skills())
        await write_vocabulary()
        yield env


@pytest.mark.parametrize("engine", ["memory", "sqlite", "postgresql"])
async def test_judged_queries_find_what_was_meant(engine, tmp_path):
    async with open_test_env(engine, tmp_path) as env:
        await fill(env.kv, load_skills())
        await write_vocabulary()

        async def search(text: str) -> list[str]:
            hits = await search_skills(text, audiences=PUBLIC_ONLY)
            return [skill.canonical for skill in hits.items]

        found = await judge(load_queries(), search)
    shares = found.shares
    print(f"{engine}: {shares.first} % in the first place, {shares.first_three} % in the first three")
    for text, instead in found.missed.items():
        print(f"  {text!r} gave {instead}")
    assert shares == NOW


@pytest.mark.parametrize("written", WHEN_WRITTEN, ids=lambda file: file.stem)
async def test_later_queries_find_no_less_than_when_they_were_written(written, env_with_skills):
    async def search(text: str) -> list[str]:
        return [skill.canonical for skill in (await search_skills(text, audiences=PUBLIC_ONLY)).items]

    found = await judge(load_queries(written), search)
    assert found.shares.first >= WHEN_WRITTEN[written].first
    assert found.shares.first_three >= WHEN_WRITTEN[written].first_three


async def test_little_is_found_is_completed_by_what_was_meant_and_never_cut(env_with_skills):
    meant = await search_skills("kubrnetes", audiences=PUBLIC_ONLY)
    assert meant.did_you_mean == "kubernetes"
    assert meant.items[0].canonical == "clusterly/platform/kubernetes"
    found = await search_skills("terraform", audiences=PUBLIC_ONLY)
    assert (len(found.items), found.did_you_mean) == (2, "")
    loose = await search_skills("update my dependencies safely", audiences=PUBLIC_ONLY)
    assert loose.items[0].slug == "dependency-updates"
    assert (await search_skills("xylophone", audiences=PUBLIC_ONLY)).items == ()


async def test_a_search_is_narrowed_and_counted_among_what_it_finds(env_with_skills):
    everything = await count_found("python", audiences=PUBLIC_ONLY)
    hits = await search_skills("python", limit=100, audiences=PUBLIC_ONLY)
    assert everything.total == len(hits.items) == sum(everything.category.values())
    chosen = Filter(category="testing")
    narrowed = await count_found("python", chosen, audiences=PUBLIC_ONLY)
    assert narrowed.category == everything.category
    assert narrowed.total == everything.category["testing"] == sum(narrowed.trust.values())
    found = await search_skills("python", chosen, audiences=PUBLIC_ONLY)
    assert {one.listing.category for one in found.items if one.listing} == {"testing"}
    assert (await count_found("xylophone", audiences=PUBLIC_ONLY)).total == 0
    assert (await count_found("kubrnetes", audiences=PUBLIC_ONLY)).total == len(
        (await search_skills("kubrnetes", audiences=PUBLIC_ONLY)).items
    )


async def test_the_vocabulary_has_words_of_public_skills_alone_and_follows_them(env_with_skills):
    kv = env_with_skills.kv
    hidden = msgspec.structs.replace(
        load_skills()[0], audience="ns:acme", name="xylophone", canonical="acme/a/b"
    )
    await kv.put(keys.skill(hidden.canonical), msgspec.json.encode(hidden))
    progress = await follow_words(VocabularyProgress())
    assert "xylophone" not in decode(await kv.get(keys.CONTROL_VOCABULARY), Vocabulary).words
    version = (await kv.get(keys.CONTROL_VOCABULARY)).version
    shown = msgspec.structs.replace(hidden, audience="public")
    await kv.put(keys.skill(hidden.canonical), msgspec.json.encode(shown))
    assert await follow_words(progress) is progress, "it was made a moment ago"
    # As of a clock that was put right since: no rest is that long.
    ahead = msgspec.structs.replace(progress, rests_until=kv.now() + 10**9)
    progress = await follow_words(ahead)
    known = await kv.get(keys.CONTROL_VOCABULARY)
    assert known.version > version and "xylophone" in decode(known, Vocabulary).words
    rested = msgspec.structs.replace(progress, rests_until=0)
    assert (await follow_words(rested)).rests_until == 0, "nothing has changed"
    await write_vocabulary()
    assert await kv.get(keys.CONTROL_VOCABULARY) == known
    assert (await search_skills("xylofone", audiences=PUBLIC_ONLY)).did_you_mean == "xylophone"


async def test_a_record_of_before_is_found_by_its_words_and_gets_its_weight_from_the_standing_job(
    env_with_skills,
):
    """What an earlier release wrote has no weight; the job writes every skill whose listing differs, and no other."""
    kv = env_with_skills.kv
    key = keys.skill("paperwork/office/pdf")
    fields = msgspec.json.decode((await kv.get(key)).value)
    del fields["listing"]["weight"]
    await kv.put(key, msgspec.json.encode(fields))
    assert (await search_skills("pdf", audiences=PUBLIC_ONLY)).items[0].canonical == "paperwork/office/pdf"
    assert await refresh_standing() > 0
    assert msgspec.json.decode((await kv.get(key)).value)["listing"]["weight"] > 0
    assert await refresh_standing() == 0
