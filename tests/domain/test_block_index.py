"""Which entries of the whole blocklist hit a skill, and which repositories they taint."""

import msgspec
import pytest

from tests.domain.test_skill_changes import PLACE, digest, publication, published
from vskill_core.findings import Severity
from vskill_core.identity import normalise
from vskill_platform.domain.blocklist import (
    BlockEntry,
    BlockTarget,
    digest_target,
    merge,
    name_target,
    place_target,
    repository_target,
)
from vskill_platform.domain.people.namespace import EVERYTHING, PUBLIC, SEVERAL
from vskill_platform.domain.recall.block_index import Blocklist, all_targets, version_targets
from vskill_platform.domain.skills.skill import PublishedSkillSummary
from vskill_platform.domain.skills.skill_changes import publish_version

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


def test_an_entry_about_a_name_or_a_content_hits_the_versions_that_have_it():
    skill, _ = publish_version(published("A"), publication("B", 2, name="Paper Reader"))
    old, new = skill.versions
    for target, hit in ((name_target("Paper Reader"), new), (digest_target(digest("A")), old)):
        listed = blocklist(entry(target))
        assert [ref for ref in skill.versions if listed.hits_version(skill, ref)] == [hit]
        assert [ref for ref in skill.versions if target in version_targets(skill, ref)] == [hit]


def test_a_summary_without_a_place_is_hit_by_nothing():
    summary = PublishedSkillSummary("acme/tools/pdf", "PDF", "", current_digest=digest("A"))
    assert blocklist(entry(name_target("PDF"))).hits_summary(summary) == ()


def test_a_repository_is_tainted_by_the_entry_about_one_of_its_skills():
    about = entry(place_target(PLACE))
    known = Blocklist(1, {about.target: about}, {PLACE.repo_key: (about,)})
    assert known.taint(normalise(PLACE.url, "skills/another"), PUBLIC) == about
    assert known.taint(OTHER, PUBLIC) is None
    assert blocklist().taint(PLACE, PUBLIC) is None


def test_an_entry_taints_what_all_who_see_it_may_read_beside_it():
    hidden = msgspec.structs.replace(entry(place_target(PLACE)), audience="ns:acme:team")
    known = Blocklist(1, {hidden.target: hidden}, {PLACE.repo_key: (hidden,)})
    assert known.taint(PLACE, "ns:acme:team") == hidden
    assert known.taint(PLACE, "ns:acme") is known.taint(PLACE, PUBLIC) is None


def test_a_reader_is_shown_what_it_may_read_and_no_name_of_anything_else():
    hidden = msgspec.structs.replace(entry(place_target(PLACE)), audience="ns:acme", skill_name="canary")
    shared = msgspec.structs.replace(
        entry(digest_target(digest("A"))), origin="ns:acme", skill_name="canary", evidence=("https://x",)
    )
    known = Blocklist(
        7, {hidden.target: hidden, shared.target: shared}, {PLACE.repo_key: (hidden,), "other": (shared,)}
    )
    assert known.shown_to(EVERYTHING) == known.shown_to(frozenset({PUBLIC, "ns:acme"})) == known
    shown = known.shown_to(frozenset({PUBLIC}))
    assert list(shown.entries) == [shared.target]
    assert "canary" not in repr(shown) and "https://x" not in repr(shown)
    assert list(shown.tainted) == ["other"]


def test_two_entries_for_one_target_are_for_the_readers_of_either_and_name_what_both_may_read():
    one, other = (
        msgspec.structs.replace(entry(digest_target(digest("A"))), audience=audience, origin=origin)
        for audience, origin in (("ns:acme:team", "ns:acme:team"), ("ns:acme", "ns:acme"))
    )
    for merged in (merge(one, other), merge(other, one)):
        assert (merged.audience, merged.origin) == ("ns:acme", "ns:acme:team")
    foreign = msgspec.structs.replace(one, audience="ns:other", origin="ns:other")
    assert (merge(one, foreign).audience, merge(one, foreign).origin) == (SEVERAL, SEVERAL)


def test_a_skill_has_its_content_among_its_targets_where_that_is_known():
    assert digest_target(digest("A")) in all_targets(PLACE, (), digest("A"))
    assert not [one for one in all_targets(PLACE, ()) if one.kind == "digest"]
