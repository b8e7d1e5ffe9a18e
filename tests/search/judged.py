"""A made-up registry and the queries that people judged over it: loaded from text, filled into a store, and measured."""

import hashlib
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import msgspec

from vskill_core.content import FileEntry, digest_of
from vskill_core.findings import Verdict
from vskill_core.identity import Identity
from vskill_platform.domain import keys
from vskill_platform.domain.downloads import Artifact
from vskill_platform.domain.skills.listing import about
from vskill_platform.domain.skills.names import HeldName, NameHolder
from vskill_platform.domain.skills.skill import PublishedSkill, SkillVersion
from vskill_platform.domain.skills.skill_changes import Publication, publish_version, with_trust
from vskill_platform.domain.skills.trust import TrustFacts, TrustTier
from vskill_platform.ledger.kv.contract import KV
from vskill_platform.ledger.kv.entries import Put

FOLDER = Path(__file__).parent
QUERIES = FOLDER / "queries.txt"
LATER = FOLDER / "later.txt"
LATEST = FOLDER / "latest.txt"
_DAY_MS = 24 * 3_600_000
_NOW = 1_800_000_000_000


class JudgedQuery(msgspec.Struct, frozen=True):
    """What somebody typed, and the skills of which one should stand first."""

    text: str
    expected: tuple[str, ...]


class Shares(msgspec.Struct, frozen=True):
    """Of 100 queries, how many have an expected skill in the first place and among the first three."""

    first: float
    first_three: float


class Judgement(msgspec.Struct, frozen=True):
    """How a search did on every query."""

    shares: Shares
    #: the queries without an expected skill in the first place, and what came instead
    missed: dict[str, list[str]]


def load_skills(path: Path = FOLDER / "catalogue.txt") -> tuple[PublishedSkill, ...]:
    """The registry's skills, each as a publication would have written it."""
    names: set[str] = set()
    skills = []
    for line in content_lines(path):
        canonical, installs, tier, days, description = (part.strip() for part in line.split("|"))
        slug = canonical.rpartition("/")[2]
        held = slug if slug not in names else f"{slug}-{canonical.partition('/')[0]}"
        names.add(held)
        skills.append(make_skill(canonical, int(installs), TrustTier(tier), int(days), description, held))
    return tuple(skills)


def load_queries(path: Path = QUERIES) -> tuple[JudgedQuery, ...]:
    pairs = (line.rsplit(" = ", 1) for line in content_lines(path))
    return tuple(JudgedQuery(text, tuple(expected.split(" | "))) for text, expected in pairs)


async def fill(kv: KV, skills: Iterable[PublishedSkill]) -> None:
    """Write the skills and who holds their names."""
    for skill in skills:
        name = skill.listed_as["public"]
        holder = HeldName({"public": NameHolder(skill.canonical, skill.created_at)})
        await kv.commit(
            [
                Put(keys.skill(skill.canonical), msgspec.json.encode(skill)),
                Put(keys.name(name), msgspec.json.encode(holder)),
            ]
        )


async def judge(queries: Iterable[JudgedQuery], search: Callable[[str], Awaitable[list[str]]]) -> Judgement:
    """Ask every query; `search` gives canonical names, best first."""
    asked = first = first_three = 0
    missed: dict[str, list[str]] = {}
    for query in queries:
        found = (await search(query.text))[:3]
        asked += 1
        first += bool(set(found[:1]) & set(query.expected))
        first_three += bool(set(found) & set(query.expected))
        if not set(found[:1]) & set(query.expected):
            missed[query.text] = found
    return Judgement(Shares(round(100 * first / asked, 1), round(100 * first_three / asked, 1)), missed)


def content_lines(path: Path) -> list[str]:
    """Without comments and empty ones."""
    lines = path.read_text("utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def make_skill(
    canonical: str, installs: int, tier: TrustTier, days: int, description: str, held: str
) -> PublishedSkill:
    owner, repo, slug = canonical.split("/")
    created_at = _NOW - days * _DAY_MS
    manifest = (FileEntry("SKILL.md", "100644", 100, hashlib.sha256(canonical.encode()).hexdigest()),)
    trust = TrustFacts(static=Verdict.PASS, installs=installs, age_ms=days * _DAY_MS)
    version = SkillVersion(
        canonical=canonical,
        number="1.0.0",
        digest=digest_of(manifest),
        content_hash="0" * 64,
        tree_hash="0" * 64,
        manifest=manifest,
        published_at=created_at,
        name=slug,
        description=description,
    )
    facts = about(name=slug, description=description)
    identity = Identity("github.com", owner, repo, f"skills/{slug}")
    skill, _ = publish_version(
        None, Publication(version, identity, "user:test", Artifact(True, "0" * 64), about=facts, trust=trust)
    )
    skill = with_trust(skill, trust)
    assert skill.listing is not None
    listing = msgspec.structs.replace(skill.listing, trust_tier=tier)
    return msgspec.structs.replace(skill, listing=listing, listed_as={"public": held})
