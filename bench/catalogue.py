"""Published skills in quantity, as the product itself would have written them, and queries that find some of them.

Names and descriptions are made of words as unevenly used as in real texts. Everything follows from one number, so that
every engine and run has the same.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise, product
from pathlib import Path
from random import Random

import msgspec

from bench.workshop import Workshop, open_env
from vskill_core.content import SkillFile, digest_of_files, manifest_of
from vskill_core.findings import Verdict
from vskill_core.identity import Identity
from vskill_platform.domain import keys
from vskill_platform.domain.client_hashes import content_hash
from vskill_platform.domain.downloads import archive_digests, artifact_of
from vskill_platform.domain.packed_content import pack
from vskill_platform.domain.people.namespace import PUBLIC
from vskill_platform.domain.skills.listing import about
from vskill_platform.domain.skills.skill import PublishedSkill, SkillVersion
from vskill_platform.domain.skills.skill_changes import Publication, publish_version
from vskill_platform.domain.skills.terms import cut_words
from vskill_platform.domain.skills.trust import TrustFacts
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.worker_context import Env

#: The first so many skills have the record of their version, which a detail reads and no list.
DETAILED = 200
#: What every skill contains.
CONTENT = (
    SkillFile(
        "SKILL.md",
        "100644",
        b"---\nname: tables\ndescription: Turns measurements into tables.\n---\n"
        + b"Read the file first, then write one row for each measurement, and say what is missing.\n" * 45,
    ),
)
#: Words of a description.
_LONG = 18
_SEED = 21
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"

NAME, QUESTION, SLIP, MIXED = "a name", "a question", "a typing error", "words that no skill has together"
#: The ten most common words.
COMMON, SEVERAL = "a common word", "six common words"
KINDS = (NAME, QUESTION, SLIP, MIXED, COMMON, SEVERAL)


def filled(workshop: Workshop, count: int) -> Path:
    """A store with so many published skills."""
    return workshop.fill(f"{count:,} skills", skill_puts(count, SystemClock().now()))


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[Env]:
    """Such a store with the content of its skills."""
    async with open_env(path) as env:
        await env.blobs.put(digest_of_files(CONTENT), pack(CONTENT))
        yield env


def skill_puts(count: int, now: int) -> Iterator[Put]:
    """Published skills with one version each, all of one content."""
    draft, draft_version = _draft(now)
    assert draft.listing is not None
    for number in range(count):
        name, description, weight = _text(number)
        canonical = canonical_of(number)
        owner = canonical.partition("/")[0]
        skill = msgspec.structs.replace(
            draft,
            canonical=canonical,
            identity=Identity("github.com", owner, "skills", name),
            owner=owner,
            slug=name,
            name=name,
            description=description,
            listed_as={PUBLIC: name},
            listing=msgspec.structs.replace(draft.listing, weight=weight),
            updated_at=now - number,
        )
        yield Put(keys.skill(canonical), msgspec.json.encode(skill))
        if number < DETAILED:
            version = msgspec.structs.replace(draft_version, canonical=canonical, name=name)
            yield Put(keys.version(canonical, version.number), msgspec.json.encode(version))


def canonical_of(number: int) -> str:
    return f"owner-{number % 997}/skills/{_text(number)[0]}"


def asked(count: int) -> tuple[list[str], str]:
    """The names whose details are asked for, of so many skills, and a word to search."""
    names = [canonical_of(number) for number in range(min(DETAILED, count))]
    return names, names[3].rpartition("/")[2].partition("-")[0]


def _draft(now: int) -> tuple[PublishedSkill, SkillVersion]:
    """A published skill and its version, to be copied with other names."""
    version = SkillVersion(
        canonical="owner/skills/skill",
        number="",
        name="skill",
        description="",
        digest=digest_of_files(CONTENT),
        content_hash=content_hash(CONTENT[0].data),
        tree_hash="2" * 64,
        manifest=manifest_of(CONTENT),
        score=100,
        published_at=now,
        commit="4" * 40,
    )
    place = Identity("github.com", "owner", "skills", "skill")
    publication = Publication(
        version,
        place,
        "worker:bench",
        artifact_of(CONTENT, archive_digests(CONTENT)),
        place.url,
        about=about(name="skill", description=""),
        trust=TrustFacts(static=Verdict.PASS),
    )
    skill, published = publish_version(None, publication)
    assert published is not None
    return skill, published


# Words.


def _words() -> tuple[str, ...]:
    """Made-up words; the earlier, the more often it is used."""
    syllables = ["".join(pair) for pair in product(_CONSONANTS, _VOWELS)]
    chance = Random(_SEED)
    return tuple(dict.fromkeys("".join(chance.choices(syllables, k=3)) for _ in range(9_000)))


_WORDS = _words()


def _text(number: int) -> tuple[str, str, int]:
    """Name, description and weight of one skill."""
    chance = Random(_SEED + number)
    name = f"{_pick(chance)}-{_pick(chance)}-{number}"
    return name, " ".join(_pick(chance) for _ in range(_LONG)), chance.randrange(64)


def _pick(chance: Random) -> str:
    """A word; the one in place n as often as 1 in n."""
    return _WORDS[int(len(_WORDS) ** chance.random()) - 1]


# Queries.


def queries(kind: str, count: int, samples: int) -> list[str]:
    """Texts of one kind for a store of so many skills."""
    chance = Random(f"{_SEED} {kind}")
    texts = [_text(number * max(count // samples, 1) % count) for number in range(samples)]
    if kind == NAME:
        return [name for name, _, _ in texts]
    if kind == COMMON:
        return [_WORDS[number % 10] for number in range(samples)]
    if kind == SEVERAL:
        return [" ".join(chance.sample(_WORDS[:10], 6)) for _ in range(samples)]
    if kind == QUESTION:
        return [_ask(chance, description) for _, description, _ in texts]
    if kind == SLIP:
        return [_slip(chance.choice(_WORDS)) for _ in range(samples)]
    # Two words of each of two: no skill has them all, unless by chance.
    pairs = pairwise([description for _, description, _ in (*texts, texts[0])])
    return [" ".join(word for one in pair for word in chance.sample(cut_words(one), 2)) for pair in pairs]


def _ask(chance: Random, description: str) -> str:
    first, second = chance.sample(cut_words(description), 2)
    return f"how do I make a {first} for my {second}"


def _slip(word: str) -> str:
    """With two letters in the middle swapped."""
    middle = len(word) // 2
    return word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :]
