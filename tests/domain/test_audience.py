"""Who may read a record, and that records written before there were audiences are public."""

import msgspec
import pytest

from vskill_core.identity import normalise
from vskill_platform.domain.people.namespace import EVERYTHING, PUBLIC, PUBLIC_ONLY, may_read
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.domain.submissions.submission import Step, Submission, create

PLACE = normalise("acme/tools", "skills/pdf")


@pytest.mark.parametrize(
    ("audience", "audiences", "expected"),
    [
        (PUBLIC, PUBLIC_ONLY, True),
        ("ns:acme", PUBLIC_ONLY, False),
        ("ns:acme", frozenset({PUBLIC, "ns:acme"}), True),
        (PUBLIC, frozenset({"ns:acme"}), False),
        (PUBLIC, frozenset(), False),
        (None, PUBLIC_ONLY, False),
        (None, EVERYTHING, True),
        ("ns:acme", EVERYTHING, True),
    ],
)
def test_a_record_is_read_by_readers_of_its_audience_and_by_the_system(audience, audiences, expected):
    assert may_read(audience, audiences) is expected


def test_records_without_an_audience_are_public():
    skill = msgspec.json.encode(PublishedSkill("acme/tools/pdf", PLACE))
    submission = create(
        submission_id="a",
        identity=PLACE,
        repo_url="https://github.com/acme/tools",
        skill_name="pdf",
        step=Step("e", 1, "user:mia", "submitted"),
    )
    kinds: list[tuple[bytes, type[PublishedSkill | Submission]]] = [
        (skill, PublishedSkill),
        (msgspec.json.encode(submission), Submission),
    ]
    for record, kind in kinds:
        fields = msgspec.json.decode(record)
        fields.pop("audience", None)
        assert msgspec.json.decode(msgspec.json.encode(fields), type=kind).audience == PUBLIC
        narrowed = msgspec.json.encode({**fields, "audience": "ns:acme"})
        assert msgspec.json.decode(narrowed, type=kind).audience == "ns:acme"
