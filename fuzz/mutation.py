"""The plain engine: honest inputs, changed at random by a seeded generator, so that every run can be repeated."""

import gzip
import random
from collections.abc import Callable, Iterator, Sequence

#: An input is rarely larger; a few grow far beyond it, because size is a kind of input too.
USUAL_BYTES = 16 * 1024
LARGE_BYTES = 512 * 1024
_EDGES = (0, 1, 0x7F, 0x80, 0xFF)


class Mutator:
    """Endless inputs from seeds and words."""

    def __init__(self, seeds: Sequence[bytes], words: Sequence[bytes], random_seed: int) -> None:
        self._seeds = list(seeds) or [b""]
        self._words = list(words)
        self._random = random.Random(random_seed)
        self._steps: tuple[Callable[[bytearray], None], ...] = (
            *(
                self._flip,
                self._edge,
                self._cut,
                self._double,
                self._splice,
                self._word,
                self._word,
                self._move,
            ),
        )

    def inputs(self) -> Iterator[bytes]:
        """Honest ones first, then changed ones without end."""
        yield from self._seeds
        while True:
            yield self._one()

    def _one(self) -> bytes:
        chosen = self._random.choice(self._seeds)
        if chosen.startswith(b"\x1f\x8b") and self._random.random() < 0.8:
            return gzip.compress(self._changed(gzip.decompress(chosen)), 1)
        if self._random.random() < 0.002:
            return self._grown(chosen)
        return self._changed(chosen)[:USUAL_BYTES]

    def _changed(self, data: bytes) -> bytes:
        out = bytearray(data)
        for _ in range(self._random.choice((1, 1, 2, 3, 5, 8, 20))):
            self._random.choice(self._steps)(out)
        return bytes(out)

    def _grown(self, data: bytes) -> bytes:
        """One word, very often: what nests or repeats shows here."""
        word = self._random.choice(self._words or [b"("])
        return data + word * (LARGE_BYTES // max(1, len(word)))

    def _at(self, out: bytearray) -> int:
        return self._random.randrange(len(out) + 1)

    def _flip(self, out: bytearray) -> None:
        if out:
            out[self._random.randrange(len(out))] ^= 1 << self._random.randrange(8)

    def _edge(self, out: bytearray) -> None:
        if out:
            out[self._random.randrange(len(out))] = self._random.choice(_EDGES)

    def _cut(self, out: bytearray) -> None:
        begin = self._at(out)
        del out[begin : begin + self._random.randrange(1, 64)]

    def _double(self, out: bytearray) -> None:
        begin = self._at(out)
        part = out[begin : begin + self._random.randrange(1, 64)]
        out[begin:begin] = part * self._random.choice((1, 1, 2, 10))

    def _splice(self, out: bytearray) -> None:
        other = self._random.choice(self._seeds)
        begin = self._random.randrange(len(other) + 1)
        at = self._at(out)
        out[at:at] = other[begin : begin + self._random.randrange(1, 512)]

    def _word(self, out: bytearray) -> None:
        if self._words:
            at = self._at(out)
            out[at : at + self._random.choice((0, 0, 1, 4))] = self._random.choice(self._words)

    def _move(self, out: bytearray) -> None:
        begin = self._at(out)
        part = bytes(out[begin : begin + 32])
        del out[begin : begin + 32]
        at = self._at(out)
        out[at:at] = part
