"""Memories for tests: a tiny one, so that no test depends on what a release remembers, and those made from folders as the
product's tool makes them."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from vskill_scan.make_memory import make_memory, skills_below
from vskill_scan.memory.memory import FORMAT, Memory, MemoryContent

DATE = "2026-01-31"


@cache
def tiny_memory() -> Memory:
    """One skill whose text and name are nobody's."""
    content = MemoryContent(
        format=FORMAT,
        date=DATE,
        ruleset="none",
        origins=["tests/nobody/nothing"],
        repositories={},
        sizes=b"\0",
        sketches=b"",
        cards=b"",
        hosts={"nothing.nobody.dev": 1},
        names={"xyzzy-plugh-nothing": 1},
        vendors={},
    )
    return Memory.load(msgspec.msgpack.encode(content)).check()


def memory_of(folder: Path, skills: Mapping[str, str], *, vendors: tuple[str, ...] = ()) -> bytes:
    """A memory of skills by their folders; each is the text of its SKILL.md."""
    for place, text in skills.items():
        (folder / place).mkdir(parents=True)
        (folder / place / "SKILL.md").write_text(text, encoding="utf-8")
    return make_memory(skills_below(folder, vendors), DATE)
