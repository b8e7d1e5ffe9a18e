"""What the marketplace lists a skill by: the facts that people filter and sort with.

`About` comes from the front matter when a version is published; `Listing` is what the skill's record shows while
at least one version is live, so lists, counts and search never offer what cannot be installed.
"""

from collections.abc import Mapping

import msgspec

from vskill_core.capability import Lack
from vskill_platform.domain.skills.trust import (
    AGE_STEP_MS,
    DAY_MS,
    FULL_AGE_MS,
    INSTALL_STEPS,
    Provenance,
    TrustFacts,
    TrustTier,
    trust_score,
    trust_tier,
)

OTHER = "other"
ANY_AGENT = "any"
NO_LICENCE = "none"
#: Instead of what a version is without: it may do all of it.
NOTHING = "nothing"
#: The ages by which lists are filtered; a skill's standing is kept in steps of 18 days.
AGE_DAYS = (18, 54, 90)

#: Each category and the words that speak for it, where the front matter names none.
_SPEAKS_FOR: Mapping[str, str] = {
    "development": "code coding refactor refactoring debug debugging git commit commits branch merge compiler bisect "
    "library framework frontend backend javascript typescript python rust java golang",
    "testing": "test tests testing coverage fixture fixtures qa regression playwright fuzz",
    "data": "data csv json sql database postgres sqlite analytics dataset spreadsheet excel etl chart charts",
    "devops": "deploy deployment docker kubernetes terraform ci pipeline cloud aws monitoring incident release",
    "security": "security vulnerability audit threat secrets hardening owasp cve",
    "documentation": "documentation docs readme changelog reference tutorial docstring manual",
    "design": "design ui ux accessibility css layout brand colour color typography figma",
    "writing": "writing write blog article translation translate grammar summary edit editing",
    "productivity": "calendar email meeting notes task tasks schedule workflow organise plan",
    "research": "research paper papers citation literature arxiv survey evidence",
    "business": "sales marketing finance invoice legal contract customer report reports",
}
CATEGORIES: Mapping[str, frozenset[str]] = {
    name: frozenset(words.split()) for name, words in _SPEAKS_FOR.items()
}

#: Agents as `compatibility` names them, and their short names.
AGENTS: Mapping[str, str] = {
    "claude": "claude",
    "codex": "codex",
    "cursor": "cursor",
    "copilot": "copilot",
    "gemini": "gemini",
    "goose": "goose",
    "opencode": "opencode",
}
_MOST_LICENCE = 40
#: More installs add nothing to the weight: it is at most 63.
_MOST_INSTALLS = 2**20
_WORD = frozenset("abcdefghijklmnopqrstuvwxyz0123456789")
_LICENCE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-")


class About(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a version's front matter says about it, in the marketplace's words."""

    category: str = OTHER
    licence: str = NO_LICENCE
    agent: str = ANY_AGENT


class Listing(msgspec.Struct, frozen=True):
    """A skill as lists show it; every field is one that they filter, count or sort by."""

    category: str
    licence: str
    agent: str
    trust_tier: TrustTier
    trust_score: int
    installs: int
    #: when the current version became so
    updated_at: int
    #: when the first version was published
    created_at: int
    #: orders what fits a search equally well, the greatest first
    weight: int = 0
    #: what the current version's capability card is without (`join_lacks`); None where it was not read whole
    without: str | None = None
    #: whether the owner of its repository submitted it
    provenance: Provenance = Provenance.UNKNOWN
    #: the highest of the steps that its installs, and its age in days, have reached
    min_installs: str = "0"
    min_age: str = "0"


def about(
    *,
    name: str,
    description: str,
    licence: str | None = None,
    compatibility: str | None = None,
    metadata: Mapping[str, str] | None = None,
) -> About:
    named = (metadata or {}).get("category", "").strip().lower()
    return About(
        category=named if named in CATEGORIES else _category(f"{name} {description}"),
        licence=_licence(licence),
        agent=_agent(compatibility),
    )


def listing(
    facts: About, trust: TrustFacts, *, updated_at: int, created_at: int, without: str | None = None
) -> Listing:
    return Listing(
        category=facts.category,
        licence=facts.licence,
        agent=facts.agent,
        trust_tier=trust_tier(trust),
        trust_score=trust_score(trust),
        installs=trust.installs,
        updated_at=updated_at,
        created_at=created_at,
        weight=search_weight(trust),
        without=without,
        provenance=trust.provenance,
        min_installs=_step_reached(INSTALL_STEPS, trust.installs),
        min_age=_step_reached(AGE_DAYS, trust.age_ms // DAY_MS),
    )


def _step_reached(steps: tuple[int, ...], value: int) -> str:
    return str(max((step for step in steps if step <= value), default=0))


def join_lacks(lacks: tuple[Lack, ...] | None) -> str | None:
    """What a version is without, as one text by which lists are filtered and counted."""
    return None if lacks is None else ",".join(lacks) or NOTHING


def lacks_in(without: str | None) -> tuple[Lack, ...] | None:
    """What `join_lacks` joined."""
    return None if without is None else tuple(lack for lack in Lack if lack in without.split(","))


def search_weight(trust: TrustFacts) -> int:
    """How established and trusted a skill is, from 0 to 63, in steps, so that a record is seldom written for it: two
    for each doubling of the installs, four for each tier of trust, one for each step of age."""
    installs = min(trust.installs, _MOST_INSTALLS).bit_length()
    tier = tuple(TrustTier).index(trust_tier(trust))
    return 2 * installs + 4 * tier + min(trust.age_ms, FULL_AGE_MS) // AGE_STEP_MS


def _category(text: str) -> str:
    """The category that most words speak for; of equals, the first in the list."""
    words = set("".join(char if char in _WORD else " " for char in text.lower()).split())
    counts = {category: len(words & known) for category, known in CATEGORIES.items()}
    best = max(counts, key=lambda category: counts[category])
    return best if counts[best] else OTHER


def _licence(text: str | None) -> str:
    """An SPDX identifier as written, without what follows it; `other` for prose."""
    if not text or not text.strip():
        return NO_LICENCE
    first = text.split()[0].rstrip(",;.")
    fits = len(first) <= _MOST_LICENCE and _LICENCE.issuperset(first)
    known = fits and (
        any(char.isdigit() for char in first) or first.isupper() or first.lower() == "unlicense"
    )
    return first if known else OTHER


def _agent(text: str | None) -> str:
    """The one agent that is named; several, or none, is any."""
    lower = (text or "").lower()
    named = [short for word, short in AGENTS.items() if word in lower]
    return named[0] if len(named) == 1 else ANY_AGENT
