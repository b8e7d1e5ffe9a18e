"""The memory: what public skills look like, as facts and hashes, in one file of a release.

`make` writes it from folders of skills, and the registry and `vskill-scan` compare submissions with it from the first
one on. It holds no text of a skill: per skill a sketch, hashes of what it can do, and where it was found; and hosts and
names with the number of owners who use them. It is a sample of what is out there, not a list of the good, and where a
skill was found proves nothing about who submits it.
"""

import hashlib
import sys
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Self

import msgspec
from msgspec import Meta

from vskill_core.errors import InvalidInput
from vskill_core.plural import counted
from vskill_scan.memory.sketch import SKETCH_SIZE

#: Rises with every change of what the file holds or of how its hashes are made.
FORMAT = 1
MOST_BYTES = 2 * 1024 * 1024
#: The number of a skill stands in 16 bits beside a hash of 48.
MOST_SKILLS = 2**16
#: From this share of its sketch on, in percent, a remembered skill is what a text was made from. One added line leaves
#: 97 in the median, twenty leave 88.
LEAST_SHARED = 80
#: A name that so many owners use is worth imitating.
POPULAR = 3
PACKAGED = Path(__file__).parent / "public-skills.memory"

_LOW_48 = 2**48 - 1
_Text = Annotated[str, Meta(min_length=1, max_length=300)]
_Owners = Annotated[int, Meta(ge=1)]
_FIX = "make it anew with this release: python -m vskill_scan.make_memory --help"


class MemoryContent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the file holds, in MessagePack."""

    format: int
    #: the day of which it tells
    date: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$")]
    #: the rules that found what the skills can do
    ruleset: _Text
    #: of each skill, where it was found: marketplace, handle and name
    origins: list[_Text]
    #: by the number of a skill, where its front matter says so, as `Identity.repo_key`
    repositories: dict[int, _Text]
    #: the number of hashes in each skill's sketch
    sizes: bytes
    #: sorted 64-bit numbers, the lowest byte first: a hash of a sketch, and the skill
    sketches: bytes
    #: the same: a skill, and a hash of something that it can do
    cards: bytes
    #: how many owners name a host
    hosts: dict[_Text, _Owners]
    #: how many owners use a name
    names: dict[_Text, _Owners]
    #: which vendor uses a name
    vendors: dict[_Text, _Text]


class Likeness(msgspec.Struct, frozen=True):
    """A remembered skill that a text was made from."""

    number: int
    #: how much of its sketch is shared, in percent
    shared: int
    origin: str
    #: empty where it is not known
    repository: str


class Memory:
    """A file, read. Looking something up costs the same however many skills it remembers."""

    def __init__(self, content: MemoryContent, digest: str) -> None:
        #: What another memory may be made on top of.
        self.content = content
        self.date = content.date
        self.ruleset = content.ruleset
        #: SHA-256 of the file
        self.digest = digest
        self.hosts = content.hosts
        self.names = content.names
        self.vendors = content.vendors
        self._origins = content.origins
        self._repositories = content.repositories
        self._sizes = content.sizes
        self._sketches = _numbers(content.sketches)
        self._cards = _numbers(content.cards)

    @classmethod
    def load(cls, data: bytes) -> Self:
        """Of a file that was checked when it was made or set. Raises InvalidInput for what is not a memory of this
        format."""
        if len(data) > MOST_BYTES:
            raise _invalid(f"it is larger than {MOST_BYTES:,} bytes")
        try:
            told = msgspec.msgpack.decode(data, type=_Format).format
            if told != FORMAT:
                raise _invalid(f"its format is {told}, and this release reads format {FORMAT}")
            content = msgspec.msgpack.decode(data, type=MemoryContent)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _invalid(str(error)) from None
        return cls(content, hashlib.sha256(data).hexdigest())

    def check(self) -> Self:
        """Raises InvalidInput where parts of it do not fit each other."""
        skills, held = len(self), Counter(one & 0xFFFF for one in self._sketches)
        sizes = dict(enumerate(self._sizes))
        spoken_of = [*held, *self._repositories, *(one >> 48 for one in self._cards[-1:])]
        if not 0 < skills <= MOST_SKILLS or len(sizes) != skills or max(spoken_of, default=0) >= skills:
            raise _invalid("it does not tell the same of each skill")
        if held != Counter(sizes) or max(self._sizes) > SKETCH_SIZE:
            raise _invalid("its sketches do not fit its skills")
        if any(one > other for numbers in (self._sketches, self._cards) for one, other in pairwise(numbers)):
            raise _invalid("its hashes are not sorted")
        return self

    def __len__(self) -> int:
        return len(self._origins)

    @property
    def words(self) -> str:
        return describe_memory(len(self), self.date)

    def find_like(self, sketch: Collection[int]) -> list[Likeness]:
        """The remembered skills of whose sketch most is shared, the most alike first."""
        shared: Counter[int] = Counter()
        for one in sketch:
            at = bisect_left(self._sketches, one << 16)
            while at < len(self._sketches) and self._sketches[at] >> 16 == one:
                shared[self._sketches[at] & 0xFFFF] += 1
                at += 1
        found = [
            Likeness(number, percent, self._origins[number], self._repositories.get(number, ""))
            for number, count in shared.items()
            if (percent := count * 100 // self._sizes[number]) >= LEAST_SHARED
        ]
        return sorted(found, key=lambda one: (-one.shared, one.origin, one.number))

    def card_of(self, number: int) -> frozenset[int]:
        """The hashes of what a remembered skill can do."""
        first, last = (bisect_left(self._cards, one << 48) for one in (number, number + 1))
        return frozenset(one & _LOW_48 for one in self._cards[first:last])

    def name_sketch(self, number: int) -> str:
        """A short name of a remembered skill's sketch, by which a reviewer's word is kept."""
        hashes = (one >> 16 for one in self._sketches if one & 0xFFFF == number)
        return hashlib.sha256(repr(sorted(hashes)).encode()).hexdigest()[:16]


class _Format(msgspec.Struct):
    """What every format has."""

    format: int


def _numbers(data: bytes) -> "array[int]":
    if len(data) % 8:
        raise _invalid("its hashes are cut")
    numbers = array("Q", data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def _invalid(problem: str) -> InvalidInput:
    return InvalidInput(f"This is not a memory that can be used: {problem}.", field="data", fix=_FIX)


def describe_memory(skills: int, date: str) -> str:
    """What was compared, as pages say it."""
    return f"{counted(skills, 'public skill')}, as of {date[:7]}"


@lru_cache(maxsize=1)
def packaged_memory() -> Memory:
    """The one that this release ships."""
    return Memory.load(PACKAGED.read_bytes())
