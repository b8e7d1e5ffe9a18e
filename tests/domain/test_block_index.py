"""Which entries of the whole blocklist hit a skill, and which repositories they taint."""

import pytest

from tests.domain.test_skill import PLACE, digest, published
from vskill_platform.domain.block_index import Blocklist, all_targets
from vskill_platform.domain.blocklist import (
    BlockEntry,
    BlockTarget,
    digest_target,
    name_target,
    place_target,
    repository_target,
)
from vskill_platform.domain.identity import normalise
from vskill_platform.domain.scan import Severity
from vskill_platform.domain.skill import PublishedSkillSummary

OTHER = normalise("acme/other", "skills/letters")


def entry(target: BlockTarget, severity: Severity = Severity.HIGH) -> BlockEntry:
    return BlockEntry(target, severity, "malware", "system", 1)


def blocklist(*entries: BlockEntry) -> Blocklist:
    return Blocklist(1, {one.target: one for one in entries}, {})


def test_a_skill_is_hit_by_its_place_repository_name_and_content_the_worst_first():
    by_place = entry(place_target(PLACE), Severity.MEDIUM)
    by_name = entry(name_target("PDF"), Severity.CRITICAL)
    by_repository = entry(repository_target(PLACE), Severity.LOW)
    by_content = entry(digest_target(digest("A")))
    all_of_them = blocklist(by_place, by_name, by_repository, by_content, entry(name_target("another")))
    found = all_of_them.hits(PLACE, ("PDF",), digest("A"))
    assert found == (by_name, by_content, by_place, by_repository)
    assert all_of_them.hits(PLACE, ("PDF",)) == (by_name, by_place, by_repository)
    assert all_of_them.hits(OTHER, (None,)) == ()


def test_an_empty_list_hits_nothing():
    assert blocklist().hits(PLACE, ("PDF",), digest("A")) == ()
    assert blocklist().hits_skill(published("A")) == ()


@pytest.mark.parametrize("target", [place_target(PLACE), name_target("PDF"), digest_target(digest("B"))])
def test_a_published_skill_is_hit_by_its_place_its_name_and_its_current_content(target: BlockTarget):
    skill = published("A", "B")
    summary = PublishedSkillSummary(
        skill.canonical, skill.name, skill.identity.url, identity=skill.identity, current_digest=digest("B")
    )
    found = blocklist(entry(target))
    assert found.hits_skill(skill) == found.hits_summary(summary) == (entry(target),)


def test_what_is_no_longer_current_hits_no_published_skill():
    assert blocklist(entry(digest_target(digest("A")))).hits_skill(published("A", "B")) == ()


def test_a_summary_without_a_place_is_hit_by_nothing():
    summary = PublishedSkillSummary("acme/tools/pdf", "PDF", "", current_digest=digest("A"))
    assert blocklist(entry(name_target("PDF"))).hits_summary(summary) == ()


def test_a_repository_is_tainted_by_the_entry_about_one_of_its_skills():
    about = entry(place_target(PLACE))
    known = Blocklist(1, {about.target: about}, {PLACE.repo_key: about})
    assert known.taint(normalise(PLACE.url, "skills/another")) == about
    assert known.taint(OTHER) is None
    assert blocklist().taint(PLACE) is None


def test_a_skill_has_its_content_among_its_targets_where_that_is_known():
    assert digest_target(digest("A")) in all_targets(PLACE, (), digest("A"))
    assert not [one for one in all_targets(PLACE, ()) if one.kind == "digest"]
