"""Which of several skills with one name stands first among what a search found."""

import msgspec

from tests.domain.test_skill_changes import published
from vskill_platform.domain.skills.catalogue import prefer_established
from vskill_platform.domain.skills.skill import PublishedSkill


def named(name: str, canonical: str, created_at: int, listed: str = "") -> PublishedSkill:
    listed_as = {"public": listed} if listed else {}
    return msgspec.structs.replace(
        published("A"), name=name, canonical=canonical, created_at=created_at, listed_as=listed_as
    )


def test_of_skills_with_one_name_its_holder_comes_first_then_the_oldest_and_others_keep_their_place() -> None:
    copy = named("PDF", "copy/tools/pdf", 7, "pdf-copy")
    other = named("Lint", "acme/tools/lint", 8)
    oldest = named("pdf", "beta/tools/pdf", 5, "pdf-beta")
    holder = named("Pdf", "acme/tools/pdf", 9, "pdf")
    assert prefer_established([copy, other, oldest, holder]) == (holder, other, oldest, copy)


def test_of_skills_of_one_age_the_canonical_name_decides() -> None:
    first, second = named("pdf", "acme/tools/pdf", 5), named("pdf", "beta/tools/pdf", 5)
    assert prefer_established([second, first]) == prefer_established([first, second]) == (first, second)
