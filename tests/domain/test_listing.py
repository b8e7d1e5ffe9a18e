"""What the marketplace files a skill under."""

import pytest

from vskill_core.findings import Verdict
from vskill_platform.domain.skills.listing import CATEGORIES, About, about, listing, search_weight
from vskill_platform.domain.skills.trust import AGE_STEP_MS, FULL_AGE_MS, Provenance, TrustFacts


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"metadata": {"category": "Security "}}, "security"),
        ({"metadata": {"category": "<script>"}, "description": "Cleans CSV data."}, "data"),
        ({"description": "Writes tests and reports coverage."}, "testing"),
        ({"description": "Does nothing in particular."}, "other"),
        ({"description": "Reviews accessibility and layout of a UI"}, "design"),
        ({"description": "(kubernetes)"}, "devops"),
    ],
)
def test_a_category_is_the_one_that_is_named_or_that_most_words_speak_for(said, expected):
    assert about(**{"name": "skill", "description": "x", **said}).category == expected


def test_no_word_speaks_for_two_categories():
    words = [word for known in CATEGORIES.values() for word in known]
    assert len(words) == len(set(words))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (None, "none"),
        ("  ", "none"),
        ("MIT", "MIT"),
        ("Apache-2.0", "Apache-2.0"),
        ("Apache-2.0 (see LICENSE.txt)", "Apache-2.0"),
        ("Proprietary. Ask us first", "other"),
        ("<b>MIT</b>", "other"),
        ("X" * 40, "X" * 40),
        ("X" * 41, "other"),
        ("MIT, see LICENSE", "MIT"),
        (",;", "other"),
        ("Unlicense", "Unlicense"),
    ],
)
def test_a_licence_is_an_identifier_or_other(written, expected):
    assert about(name="s", description="d", licence=written).licence == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (None, "any"),
        ("Requires Claude Code 2 or newer", "claude"),
        ("Cursor or Claude", "any"),
        ("Requires git", "any"),
    ],
)
def test_an_agent_is_named_where_exactly_one_is(written, expected):
    assert about(name="s", description="d", compatibility=written).agent == expected


def test_facts_that_say_nothing_take_no_room():
    assert about(name="s", description="d") == About()


@pytest.mark.parametrize(
    ("facts", "weight"),
    [
        (TrustFacts(), 4),
        (TrustFacts(installs=1), 6),
        (TrustFacts(installs=2), 8),
        (TrustFacts(installs=3), 8),
        (TrustFacts(installs=1000), 24),
        (TrustFacts(installs=2**20 - 1), 44),
        (TrustFacts(installs=2**20), 46),
        (TrustFacts(installs=2**40), 46),
        (TrustFacts(static=Verdict.PASS), 8),
        (TrustFacts(age_ms=AGE_STEP_MS - 1), 4),
        (TrustFacts(age_ms=AGE_STEP_MS), 5),
        (TrustFacts(age_ms=FULL_AGE_MS), 9),
        (TrustFacts(age_ms=FULL_AGE_MS * 9), 9),
        (
            TrustFacts(
                Verdict.PASS, 100, Verdict.PASS, Provenance.VERIFIED, FULL_AGE_MS, 2**20, reviewed=True
            ),
            63,
        ),
    ],
)
def test_a_weight_grows_with_installs_trust_and_age_up_to_63(facts, weight):
    assert search_weight(facts) == weight
    assert listing(About(), facts, updated_at=1, created_at=1).weight == weight
