"""What the marketplace files a skill under."""

import pytest

from vskill_core.capability import Lack
from vskill_core.findings import Verdict
from vskill_platform.domain.skills.listing import (
    AGE_DAYS,
    CATEGORIES,
    About,
    about,
    join_lacks,
    lacks_in,
    listing,
    search_weight,
)
from vskill_platform.domain.skills.trust import AGE_STEP_MS, DAY_MS, FULL_AGE_MS, Provenance, TrustFacts


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
        (TrustFacts(static=Verdict.PASS), 4),
        (TrustFacts(static=Verdict.PASS, reviewed=True), 8),
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


def test_what_a_version_is_without_is_one_text_and_can_be_read_back():
    assert (join_lacks(None), lacks_in(None)) == (None, None)
    for lacks in ((), (Lack.NETWORK,), (Lack.NETWORK, Lack.FILES), tuple(Lack)):
        assert lacks_in(join_lacks(lacks)) == lacks
    assert join_lacks(()) == "nothing"


@pytest.mark.parametrize(
    ("trust", "installs", "age"),
    [
        (TrustFacts(), "0", "0"),
        (TrustFacts(installs=9, age_ms=18 * DAY_MS), "1", "18"),
        (TrustFacts(installs=10, age_ms=FULL_AGE_MS), "10", "90"),
        (TrustFacts(installs=5_000_000, age_ms=54 * DAY_MS - 1), "1000", "18"),
    ],
)
def test_a_listing_has_the_highest_steps_that_were_reached(trust, installs, age):
    found = listing(About(), trust, updated_at=1, created_at=1)
    assert (found.min_installs, found.min_age) == (installs, age)


def test_every_age_that_can_be_chosen_is_one_that_the_standing_can_tell():
    assert all(days * DAY_MS % AGE_STEP_MS == 0 and days * DAY_MS <= FULL_AGE_MS for days in AGE_DAYS)
