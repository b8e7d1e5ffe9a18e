"""Skills whose names and descriptions are made of words as unevenly used as in real texts, and queries of every kind
that find some of them. Everything follows from one number, so that every engine and run has the same."""

from collections.abc import Iterator
from itertools import pairwise, product
from random import Random

import msgspec

from bench.records import draft_skill
from vskill_platform.domain import keys
from vskill_platform.domain.identity import Identity
from vskill_platform.domain.skill import PublishedSkill
from vskill_platform.domain.synonyms import GROUPED
from vskill_platform.domain.terms import cut_terms

#: Words of a description.
_LONG = 18
_SEED = 21
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"

NAME, COMMON, QUESTION, SLIP, LOOSENED = (
    "a name",
    "a common word",
    "a question",
    "a typing error",
    "words that no skill has together",
)
KINDS = (NAME, COMMON, QUESTION, SLIP, LOOSENED)


def _words() -> tuple[str, ...]:
    """Made-up words, with those of the groups of synonyms among them; the earlier, the more often it is used."""
    syllables = ["".join(pair) for pair in product(_CONSONANTS, _VOWELS)]
    chance = Random(_SEED)
    made = ["".join(chance.choices(syllables, k=3)) for _ in range(8_000)]
    words = list(dict.fromkeys((*made, *GROUPED)))
    chance.shuffle(words)
    return tuple(words)


_WORDS = _words()


def skill_text(number: int) -> tuple[str, str, int]:
    """Name, description and weight of one skill."""
    chance = Random(_SEED + number)
    name = f"{_pick(chance)}-{_pick(chance)}-{number}"
    return name, " ".join(_pick(chance) for _ in range(_LONG)), chance.randrange(64)


def _pick(chance: Random) -> str:
    """A word; the one in place n as often as 1 in n."""
    return _WORDS[int(len(_WORDS) ** chance.random()) - 1]


def skill_records(count: int, now: int) -> Iterator[tuple[str, str]]:
    """Keys and values of published skills with these texts."""
    draft = draft_skill(now)
    assert draft.listing is not None
    for number in range(count):
        name, description, weight = skill_text(number)
        owner = f"owner-{number % 997}"
        canonical = f"{owner}/skills/{name}"
        skill = msgspec.structs.replace(
            draft,
            canonical=canonical,
            identity=Identity("github.com", owner, "skills", name),
            slug=name,
            name=name,
            description=description,
            listing=msgspec.structs.replace(draft.listing, weight=weight),
        )
        yield keys.skill(canonical), _encode(skill)


def _encode(skill: PublishedSkill) -> str:
    return msgspec.json.encode(skill).decode()


def queries(kind: str, count: int, samples: int) -> list[str]:
    """Texts of one kind for a store of so many skills."""
    chance = Random(f"{_SEED} {kind}")
    texts = [skill_text(number * max(count // samples, 1) % count) for number in range(samples)]
    if kind == NAME:
        return [name for name, _, _ in texts]
    if kind == COMMON:
        return [_WORDS[number % 10] for number in range(samples)]
    if kind == QUESTION:
        return [_ask(chance, description) for _, description, _ in texts]
    if kind == SLIP:
        return [_slip(chance.choice(_WORDS)) for _ in range(samples)]
    return [_mix(chance, one, other) for (_, one, _), (_, other, _) in pairwise([*texts, texts[0]])]


def _mix(chance: Random, *descriptions: str) -> str:
    """Two words of each: no skill has them all, unless by chance."""
    return " ".join(word for one in descriptions for word in chance.sample(cut_terms(one), 2))


def _ask(chance: Random, description: str) -> str:
    first, second = chance.sample(cut_terms(description), 2)
    return f"how do I make a {first} for my {second}"


def _slip(word: str) -> str:
    """With two letters in the middle swapped."""
    middle = len(word) // 2
    return word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :]
