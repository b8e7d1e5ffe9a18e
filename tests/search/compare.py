"""How often a search finds what was meant, beside plain FTS5 over the same skills, in one run.

`python -m tests.search.compare SKILLS QUERIES`: each line of QUERIES is a query, a tab and the name that should stand
first, or several between bars. SKILLS has a name, a bar and a description in each line, or is a corpus (`.jsonl.xz`)
of files with front matter.
"""

import asyncio
import json
import lzma
import re
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import yaml

from tests.search.judged import JudgedQuery, Judgement, content_lines, fill, judge, make_skill
from tests.support.envs import open_test_env
from vskill_platform.domain.people.namespace import PUBLIC_ONLY
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.domain.skills.terms import cut_words
from vskill_platform.domain.skills.trust import TrustTier
from vskill_platform.store.skills.catalogue import search_skills
from vskill_platform.store.skills.vocabulary import write_vocabulary


def load_named(path: Path) -> tuple[PublishedSkill, ...]:
    """The skills of a file, all equally established."""
    pairs = (
        _read_corpus(path) if path.suffix == ".xz" else (line.split(" | ", 1) for line in content_lines(path))
    )
    return tuple(_named(number, name, description) for number, (name, description) in enumerate(pairs))


def load_tabbed(path: Path) -> tuple[JudgedQuery, ...]:
    pairs = (line.split("\t") for line in content_lines(path))
    return tuple(JudgedQuery(text, tuple(names.split("|"))) for text, names in pairs)


async def compare(
    skills: tuple[PublishedSkill, ...], queries: tuple[JudgedQuery, ...], folder: Path
) -> dict[str, Judgement]:
    """What each search finds, by its name."""

    async def search(text: str) -> list[str]:
        hits = await search_skills(text, limit=3, audiences=PUBLIC_ONLY)
        return [skill.name for skill in hits.items]

    table = sqlite3.connect(":memory:")
    table.execute("CREATE VIRTUAL TABLE t USING fts5 (name, description, tokenize = 'porter unicode61')")
    table.executemany("INSERT INTO t VALUES (?, ?)", [(one.name, one.description) for one in skills])

    async def search_plainly(text: str) -> list[str]:
        match = " OR ".join(f'"{word}"' for word in cut_words(text))
        found = table.execute("SELECT name FROM t WHERE t MATCH ? ORDER BY bm25(t) LIMIT 3", (match,))
        return [name for (name,) in found]

    async with open_test_env("sqlite", folder) as env:
        await fill(env.kv, skills)
        await write_vocabulary()
        ours = await judge(queries, search)
    plain = await judge(queries, search_plainly)
    table.close()
    return {"ours": ours, "plain FTS5": plain}


def _named(number: int, name: str, description: str) -> PublishedSkill:
    slug = "-".join(cut_words(name)) or "skill"
    skill = make_skill(f"owner{number}/repo/{slug}", 0, TrustTier.T2, 100, description, f"{slug}-{number}")
    return msgspec.structs.replace(skill, name=name)


def _read_corpus(path: Path) -> Iterator[tuple[str, str]]:
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            text = json.loads(line)["files"].get("SKILL.md", {}).get("text", "")
            matter = re.match(r"---\r?\n(.*?)\r?\n---", text, re.DOTALL)
            try:
                fields = yaml.safe_load(matter[1]) if matter else None
            except yaml.YAMLError:
                continue
            if isinstance(fields, dict) and fields.get("name"):
                yield str(fields["name"]), str(fields.get("description") or "")


def main(skills: str, queries: str) -> None:
    judged = load_tabbed(Path(queries))
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(compare(load_named(Path(skills)), judged, Path(folder)))
    for name, judgement in found.items():
        shares = judgement.shares
        print(f"{name}: {shares.first} % in the first place, {shares.first_three} % in the first three")
    for text, instead in found["ours"].missed.items():
        print(f"  {text!r} gave {', '.join(instead) or 'nothing'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
