"""Lists of skills for git: their numbers only grow, and who may read is never waited for."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.domain.test_skill_changes import by, publication
from vskill_core.errors import PlatformError
from vskill_core.kind import PLUGIN_SCHEMA as SCHEMA
from vskill_platform.domain.skills.git_list import (
    GitList,
    ListMarks,
    ServedList,
    follow_list,
    must_check,
    say_withdrawn,
    tombstone,
    withdrawn_number,
)
from vskill_platform.domain.skills.numbering import listed_number, parse_semver
from vskill_platform.domain.skills.skill import PublishedSkill, StatusRole, listed_version
from vskill_platform.domain.skills.skill_changes import (
    delete,
    publish_version,
    restore,
    take_down,
    unyank,
    yank,
)

MARKS = ListMarks("7", 1, 2, 3)
LIST = ServedList("a" * 64, 5_000, "all: 1 skills")


def published(*contents: str) -> PublishedSkill:
    skill = None
    for content in contents:
        skill, _ = publish_version(skill, publication(content, 1_700_000_000_000))
    assert skill is not None
    return skill


@pytest.mark.parametrize(
    ("last", "current", "status_at", "number"),
    [
        ("1.2.3", "1.2.3", 0, "1.2.3"),
        ("1.2.3", "1.2.3", 5, "1.2.4-0.9"),
        ("1.2.3", "1.2.2", 0, "1.2.4-0.9"),
        ("1.2.3", None, 5, "1.2.4-0.9"),
        ("1.2.3-rc.1", None, 5, "1.2.3-rc.1.0.9"),
        ("1.2.3-rc.1", "1.2.3-rc.1", 0, "1.2.3-rc.1"),
        (f"1.0.{10**17}", None, 5, f"1.0.{10**17 + 1}-0.9"),
        ("none of ours", None, 5, "none of ours.9"),
    ],
)
def test_the_number_in_lists(last: str, current: str | None, status_at: int, number: str) -> None:
    assert listed_number(last, current, status_at=status_at, updated_at=9) == number


STEPS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4), st.integers(0, 2)), max_size=25)


def test_a_skill_of_which_nothing_was_withdrawn_has_its_current_number_in_lists() -> None:
    assert listed_version(published("A", "B")) == "1.0.1"


@given(STEPS)
def test_whatever_happens_to_a_skill_its_number_in_lists_only_grows(
    steps: list[tuple[int, int, int]],
) -> None:
    """Also where several things happen in one moment. Another state of what can be installed is another number."""
    skill, now, contents = published("first"), 1_700_000_000_000, 0
    seen = parse_semver(listed_version(skill), 18)
    assert seen is not None
    for kind, place, pause in steps:
        now += pause
        before = (skill.current_version, skill.current_digest)
        number = skill.versions[place % len(skill.versions)].number
        try:
            match kind:
                case 0:
                    contents += 1
                    skill, _ = publish_version(skill, publication(f"text {contents}", now))
                case 1:
                    skill = take_down(skill, by(StatusRole.REVIEWER, now), number=number)
                case 2:
                    skill = restore(skill, by(StatusRole.REVIEWER, now), number=number)
                case 3:
                    skill = yank(skill, by(StatusRole.OWNER, now), number=number)
                case 4:
                    skill = unyank(skill, by(StatusRole.OWNER, now), number=number)
                case 5:
                    skill = delete(skill, by(StatusRole.OWNER, now))
                case _:
                    skill, _ = publish_version(skill, publication("first", now))
        except PlatformError:
            continue
        listed = parse_semver(listed_version(skill), 18)
        assert listed is not None
        if (skill.current_version, skill.current_digest) == before:
            assert listed.precedence >= seen.precedence
        else:
            assert listed.precedence > seen.precedence
        seen = listed


@pytest.mark.parametrize(
    ("skill", "words"),
    [
        (
            take_down(published("A"), by(StatusRole.REVIEWER, reason="it steals tokens.")),
            "Taken down: it steals",
        ),
        (
            take_down(published("A"), by(StatusRole.SYSTEM, reason="blocked: bad")),
            "locked: bad. No version of acme/tools/pdf is offered, and nothing replaces it: remove this plugin",
        ),
        (yank(published("A"), by(StatusRole.OWNER)), "Withdrawn by its owner: because."),
        (delete(published("A"), by(StatusRole.OWNER)), "Deleted by its owner: because."),
    ],
)
def test_a_tombstone_has_no_skills_and_says_why(skill: PublishedSkill, words: str) -> None:
    assert say_withdrawn(skill).startswith("WITHDRAWN") and words in say_withdrawn(skill)
    assert withdrawn_number(skill).endswith(".withdrawn")
    manifests = {file.path: json.loads(file.data) for file in tombstone("pdf", skill)}
    says = {"name": "pdf", "version": withdrawn_number(skill), "description": say_withdrawn(skill)}
    assert manifests == {
        "withdrawn/pdf/plugin.json": {"$schema": SCHEMA, **says},
        "withdrawn/pdf/.claude-plugin/plugin.json": says,
        "withdrawn/pdf/gemini-extension.json": says,
    }


def test_the_last_reason_counts() -> None:
    skill = take_down(published("A", "B"), by(StatusRole.REVIEWER, reason="old"), number="1.0.0")
    skill = take_down(skill, by(StatusRole.REVIEWER, reason="new"), number="1.0.1")
    assert "Taken down: new." in say_withdrawn(skill)


def test_a_reason_that_is_a_sentence_keeps_its_one_full_stop() -> None:
    skill = take_down(published("A"), by(StatusRole.REVIEWER, reason=".env is sent away. "))
    assert "Taken down: .env is sent away. No version of " in say_withdrawn(skill)


@pytest.mark.parametrize(
    ("marks", "now", "due"),
    [
        (MARKS, 1_000, False),
        (MARKS, 10_999, False),
        (MARKS, 11_000, True),
        (MARKS, 999, True),
        (ListMarks("9", 8, 2, 3), 10_999, False),
        (ListMarks("7", 1, 3, 3), 1_000, True),
        (ListMarks("7", 1, 2, 4), 1_000, True),
    ],
)
def test_a_change_of_readers_counts_at_once_and_all_else_after_the_interval(
    marks: ListMarks, now: int, due: bool
) -> None:
    assert must_check(GitList(LIST, MARKS, 1_000), marks, now, 10_000) is due


def test_a_client_between_its_two_requests_is_given_the_list_before() -> None:
    second = ServedList("b" * 64, 6_000, "all: 2 skills")
    first = follow_list(None, LIST, MARKS, 1_000)
    assert first == GitList(LIST, MARKS, 1_000)
    later = ListMarks("8", 1, 2, 3)
    again = follow_list(first, LIST, later, 2_000)
    assert again == GitList(LIST, later, 2_000)
    changed = follow_list(again, second, later, 3_000)
    assert changed == GitList(second, later, 3_000, LIST)
    assert follow_list(changed, second, later, 4_000).before == LIST


def test_but_not_where_its_readers_were_others() -> None:
    second = ServedList("b" * 64, 6_000, "all: 0 skills")
    known = GitList(LIST, MARKS, 1_000, second)
    assert follow_list(known, second, ListMarks("7", 1, 3, 3), 2_000).before is None
    assert follow_list(known, LIST, ListMarks("7", 1, 3, 3), 2_000).before is None
