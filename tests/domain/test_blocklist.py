"""Block targets are typed (D10), and merging entries loses nothing."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vskill_core.errors import InvalidInput
from vskill_core.findings import Severity
from vskill_core.identity import normalise, upload_identity, upstream_identity
from vskill_platform.domain.blocklist import (
    BlockEntry,
    BlockTarget,
    TargetKind,
    digest_target,
    hit_reason,
    merge,
    name_target,
    parse_target,
    place_target,
    repository_target,
    targets_of,
)

GOOGLE = normalise("acme/tools", "skills/google")
OTHER = normalise("other/tools", "skills/google")
DIGEST = "ab" * 32
OTHER_DIGEST = "cd" * 32


def test_d10_blocking_a_name_in_one_repository_leaves_the_same_name_elsewhere_alone() -> None:
    target = place_target(GOOGLE)
    assert target in targets_of(GOOGLE, ["google"], DIGEST)
    assert target not in targets_of(OTHER, ["google"], DIGEST)
    assert target not in targets_of(normalise("acme/tools", "skills/bing"), ["google"])


def test_each_kind_of_target_reaches_as_far_as_it_says() -> None:
    sibling = normalise("ACME/Tools", "skills/bing")
    assert repository_target(sibling) in targets_of(GOOGLE)
    assert repository_target(OTHER) not in targets_of(GOOGLE)
    assert name_target("Google") in targets_of(OTHER, ["google", ""])
    assert digest_target(DIGEST.upper()) in targets_of(OTHER, [], DIGEST)
    assert {t.kind for t in targets_of(GOOGLE, ["google"], DIGEST)} == set(TargetKind)


def test_a_digest_of_an_upstream_reaches_what_that_one_brought_and_nothing_else() -> None:
    target = parse_target(TargetKind.DIGEST.value, f"{DIGEST.upper()}@HQ")
    assert target == digest_target(f"{DIGEST}@hq") != digest_target(DIGEST)
    brought = upstream_identity("hq", "tools", "tidy")
    assert target in targets_of(brought, [], DIGEST) and digest_target(DIGEST) in targets_of(
        brought, [], DIGEST
    )
    for other in (upstream_identity("shop", "tools", "tidy"), OTHER):
        assert target not in targets_of(other, [], DIGEST)
    assert target not in targets_of(brought, [], "b" * 64)


def test_the_root_of_a_repository_and_the_whole_repository_are_two_targets() -> None:
    root = normalise("acme/tools")
    assert place_target(root) != repository_target(root)
    assert place_target(root) not in targets_of(GOOGLE)


def test_a4b_a_block_of_a_repository_does_not_reach_another_host_or_an_upload() -> None:
    target = repository_target(normalise("https://github.com/acme/skills"))
    assert target not in targets_of(normalise("https://gitlab.com/acme/skills"))
    assert target not in targets_of(upload_identity("acme", "x"))


@pytest.mark.parametrize("digest", ["", "ab", "zz" * 32, DIGEST + "a"])
def test_a_digest_target_needs_a_real_digest(digest: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        digest_target(digest)
    assert caught.value.field == "digest" and caught.value.fix


@pytest.mark.parametrize("name", ["", " ", "a b", "../x", "a@b"])
def test_a_digest_target_of_an_upstream_needs_its_name(name: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        digest_target(f"{DIGEST}@{name}")
    assert caught.value.fix


def test_a_name_target_needs_a_name_and_folds_case_and_spaces() -> None:
    assert name_target("  My   Skill ") == name_target("my skill")
    with pytest.raises(InvalidInput) as caught:
        name_target("  ")
    assert caught.value.field == "name" and caught.value.fix


@pytest.mark.parametrize("kind", TargetKind)
def test_a_target_is_read_as_a_person_writes_it_whatever_its_kind(kind: TargetKind) -> None:
    written = {
        TargetKind.PLACE: ("https://github.com/acme/tools/tree/main/skills/google", place_target(GOOGLE)),
        TargetKind.REPOSITORY: ("https://github.com/Acme/Tools.git", repository_target(GOOGLE)),
        TargetKind.DIGEST: (DIGEST.upper(), digest_target(DIGEST)),
        TargetKind.NAME: (" Google ", name_target("google")),
    }
    text, target = written[kind]
    assert parse_target(kind.value, text) == target
    assert target.kind is kind


def entry(severity=Severity.LOW, at=1, by="ann", evidence=(), content=("", ""), **more) -> BlockEntry:
    content_hash, digest = content
    return BlockEntry(
        place_target(GOOGLE),
        severity,
        f"{severity.value} by {by}",
        by,
        at,
        evidence=evidence,
        content_hash=content_hash,
        digest=digest,
        **more,
    )


ENTRIES = st.builds(
    entry,
    st.sampled_from(Severity),
    st.integers(0, 5),
    st.sampled_from(["ann", "bob", "system"]),
    st.lists(st.sampled_from("abcd"), unique=True).map(sorted).map(tuple),
    updated_at=st.integers(0, 5),
    threat_type=st.sampled_from(["", "theft", "ransom"]),
    skill_name=st.sampled_from(["", "google"]),
    source_url=st.sampled_from(["", "https://example.com/report"]),
    content=st.sampled_from(
        [("", ""), ("", DIGEST), ("hash 1", DIGEST), ("hash 2", OTHER_DIGEST), ("hash 3", "")]
    ),
)


@given(ENTRIES, ENTRIES)
def test_severity_only_rises_evidence_is_a_union_and_the_first_discovery_is_kept(
    old: BlockEntry, new: BlockEntry
) -> None:
    merged = merge(old, new)
    assert merged.severity.rank == max(old.severity.rank, new.severity.rank)
    assert set(merged.evidence) == {*old.evidence, *new.evidence}
    assert (merged.discovered_at, merged.discovered_by) == min(
        (e.discovered_at, e.discovered_by) for e in (old, new)
    )
    assert merged.reason in (old.reason, new.reason) and merged.updated_at == max(
        old.updated_at, new.updated_at
    )
    assert bool(merged.threat_type) == bool(old.threat_type or new.threat_type)
    for fact in ("skill_name", "source_url"):
        assert getattr(merged, fact) == (getattr(old, fact) or getattr(new, fact))
    contents = [(one.content_hash, one.digest) for one in (old, new)]
    assert (merged.content_hash, merged.digest) in contents
    for fact in ("content_hash", "digest"):
        assert getattr(merged, fact) or not all(getattr(one, fact) for one in (old, new))
    assert bool(merged.content_hash) == any(content_hash for content_hash, _ in contents)
    if merged.content_hash == "":
        assert bool(merged.digest) == any(digest for _, digest in contents)


@given(ENTRIES, ENTRIES)
def test_merging_again_changes_nothing(old: BlockEntry, new: BlockEntry) -> None:
    assert merge(old, old) == old
    merged = merge(old, new)
    assert merge(merged, new) == merged and merge(merged, old) == merged


@pytest.mark.parametrize(
    ("less", "more"),
    [(("", ""), ("", DIGEST)), (("hash", ""), ("hash", DIGEST)), (("", DIGEST), ("hash", ""))],
)
def test_a_merged_entry_names_the_content_of_which_more_is_known(less, more) -> None:
    for merged in (
        merge(entry(content=less), entry(content=more)),
        merge(entry(content=more), entry(content=less)),
    ):
        assert (merged.content_hash, merged.digest) == more


def test_entries_of_two_targets_do_not_merge() -> None:
    other = msgspec.structs.replace(entry(), target=place_target(OTHER))
    with pytest.raises(InvalidInput) as caught:
        merge(entry(), other)
    assert caught.value.field == "target" and caught.value.fix


def test_the_worst_entry_gives_the_reason() -> None:
    assert hit_reason([]) is None
    worst = msgspec.structs.replace(entry(Severity.CRITICAL), target=name_target("google"))
    reason = hit_reason([entry(), worst])
    assert reason is not None and "critical by ann" in reason and "name google" in reason


def test_an_entry_survives_storage() -> None:
    one = entry(Severity.HIGH, evidence=("https://example.com/report",))
    assert msgspec.json.decode(msgspec.json.encode(one), type=BlockEntry) == one
    assert str(BlockTarget(TargetKind.NAME, "x")) == "name x"
