"""Revoked versions: how each was withdrawn, what to install instead, and what one change of a record means."""

import msgspec
import pytest

from tests.domain.test_skill_changes import by, digest, publication, published
from vskill_core.findings import Severity
from vskill_core.revocation_list import RevokedStatus
from vskill_platform.domain.blocklist import BLOCK_REASON
from vskill_platform.domain.client_hashes import content_hash
from vskill_platform.domain.skills.skill import (
    PublishedSkill,
    Replacement,
    Revocation,
    RevocationKind,
    RevocationStep,
    RevokedList,
    RevokedVersion,
    StatusRole,
    revocation_steps,
    revoked_versions,
    revokes_content,
    status_of,
    steps_by_kind,
)
from vskill_platform.domain.skills.skill_changes import (
    StatusChange,
    delete,
    publish_version,
    restore,
    take_down,
    yank,
)

BLOCK = StatusChange(
    StatusRole.BLOCK, "system", 50, f"{BLOCK_REASON}: malware", "credential-theft", Severity.CRITICAL
)


def blocked(*contents: str) -> PublishedSkill:
    """With the first version taken down by an entry of the blocklist."""
    return take_down(published(*contents), BLOCK, number="1.0.0")


def revoked(
    number: str = "1.0.0",
    content: str = "A",
    status: RevokedStatus = RevokedStatus.BLOCKED,
    skill: str = "acme/tools/pdf",
    replacement: Replacement | None = None,
) -> RevokedVersion:
    hashed = content_hash(content.encode())
    return RevokedVersion(
        skill,
        number,
        digest(content),
        hashed,
        status,
        f"{BLOCK_REASON}: malware",
        50,
        "credential-theft",
        Severity.CRITICAL,
        replacement,
    )


@pytest.mark.parametrize(
    ("skill", "status"),
    [
        (published("A"), None),
        (yank(published("A"), by(StatusRole.OWNER)), RevokedStatus.YANKED),
        (delete(published("A"), by(StatusRole.OWNER)), RevokedStatus.DELETED),
        (blocked("A"), RevokedStatus.BLOCKED),
        (take_down(published("A"), by(StatusRole.REVIEWER)), RevokedStatus.TAKEN_DOWN),
    ],
)
def test_how_a_version_was_withdrawn_follows_from_who_did_it(
    skill: PublishedSkill, status: RevokedStatus | None
) -> None:
    assert status_of(skill.versions[0]) is status


def test_a_revoked_version_says_what_it_was_and_what_to_install_instead() -> None:
    instead = Replacement("1.0.2", digest("C"))
    assert revoked_versions(blocked("A", "B", "C")) == (revoked(replacement=instead),)


def test_where_no_version_is_live_there_is_nothing_to_install_instead() -> None:
    assert revoked_versions(blocked("A")) == (revoked(),)


def test_a_list_is_in_the_order_of_digest_skill_and_version() -> None:
    first, second = sorted(("A", "B"), key=digest)
    expected = [
        revoked("1.0.1", first, skill="acme/tools/pdf"),
        revoked("1.0.0", first, skill="beta/tools/pdf"),
        revoked("1.0.2", first, skill="beta/tools/pdf"),
        revoked("1.0.0", second, skill="acme/tools/pdf"),
    ]
    own = {
        name: tuple(one for one in reversed(expected) if one.skill == name)
        for name in ("beta/tools/pdf", "acme/tools/pdf")
    }
    assert list(RevokedList(7, own, "").versions) == expected


# What a change means for lists.


def step(
    status: RevokedStatus | None, reason: str, threat_type: str = "", severity: Severity | None = None
) -> RevocationStep:
    """Of the first version."""
    hashed = content_hash(b"A")
    return RevocationStep("1.0.0", digest("A"), hashed, reason, status, threat_type, severity)


def test_withdrawing_a_version_is_a_step_of_that_version_alone() -> None:
    known = published("A", "B")
    expected = step(RevokedStatus.BLOCKED, f"{BLOCK_REASON}: malware", "credential-theft", Severity.CRITICAL)
    assert revocation_steps(known, blocked("A", "B")) == (expected,)


def test_bringing_it_back_is_a_step_without_a_status() -> None:
    back = restore(blocked("A", "B"), by(StatusRole.REVIEWER), number="1.0.0")
    assert revocation_steps(blocked("A", "B"), back) == (step(None, "because"),)


def test_another_replacement_changes_lists_and_is_no_step() -> None:
    newer, _ = publish_version(blocked("A", "B"), publication("C", 60))
    assert revocation_steps(blocked("A", "B"), newer) == ()


def test_other_readers_change_lists_only_where_something_is_revoked() -> None:
    def narrowed(skill: PublishedSkill) -> PublishedSkill:
        return msgspec.structs.replace(skill, audience="ns:acme")

    assert revocation_steps(blocked("A"), narrowed(blocked("A"))) == ()
    assert revocation_steps(published("A"), narrowed(published("A"))) is None


@pytest.mark.parametrize("skill", [published("A"), blocked("A")])
def test_a_record_that_says_the_same_of_its_versions_leaves_lists_as_they_are(skill: PublishedSkill) -> None:
    assert revocation_steps(skill, msgspec.structs.replace(skill, description="other words")) is None


@pytest.mark.parametrize(
    ("status", "replacement", "bad"),
    [
        (RevokedStatus.BLOCKED, None, True),
        (RevokedStatus.TAKEN_DOWN, Replacement("1.0.1", digest("B")), True),
        (RevokedStatus.TAKEN_DOWN, Replacement("1.0.1", digest("A")), False),
        (RevokedStatus.YANKED, None, False),
        (RevokedStatus.DELETED, Replacement("1.0.1", digest("B")), False),
    ],
)
def test_bytes_are_bad_where_the_registry_withdrew_them_and_they_are_not_live_again(
    status: RevokedStatus, replacement: Replacement | None, bad: bool
) -> None:
    assert revokes_content(revoked(status=status, replacement=replacement)) is bad


def test_the_steps_of_a_commit_are_sorted_by_what_they_mean_to_others() -> None:
    back, yanked = step(None, "back"), step(RevokedStatus.YANKED, "mine")
    gone = [step(status, "gone") for status in RevokedStatus if status is not RevokedStatus.YANKED]
    found = steps_by_kind(Revocation(7, 50, "acme/tools/pdf", (gone[0], back, yanked, *gone[1:])))
    assert found == {
        RevocationKind.WITHDRAWN: tuple(gone),
        RevocationKind.RESTORED: (back,),
        RevocationKind.YANKED: (yanked,),
    }
