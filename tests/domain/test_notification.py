"""What an account is told and watches, as plain data."""

import msgspec

from vskill_platform.domain.notification import (
    PROOF_MS,
    AccountChoices,
    MailProof,
    Notification,
    Topic,
    targets_for,
    with_watched,
    without_watched,
)


def test_later_notifications_sort_first_and_no_two_have_one_place():
    def moment(at: int, name: str = "e") -> str:
        return Notification(name, Topic.OWN, "submission.decided", at, "told").moment

    assert moment(1_800_000_000_000) == "98200000000000-e"
    assert moment(1) == "99999999999999-e"
    assert moment(2) < moment(1) and moment(1, "a") != moment(1, "b")


def test_a_record_of_an_earlier_release_was_told_when_it_happened():
    old = Notification("e", Topic.OWN, "submission.decided", 5, "told")
    assert old.is_unread(4) and not old.is_unread(5)
    late = msgspec.structs.replace(old, told_at=9)
    assert late.is_unread(8) and not late.is_unread(9)


def test_a_code_of_an_earlier_release_is_good_for_a_day_from_the_first_that_was_asked_for():
    old = msgspec.json.decode(b'{"address":"a@b","code":"c","since":5,"tries":2}', type=MailProof)
    assert old.good_until == 5 + PROOF_MS


def test_what_is_watched_stands_once_in_the_order_of_names():
    watches = with_watched(with_watched(AccountChoices(), "b"), "a/b/c")
    assert watches == AccountChoices(("a/b/c", "b"))
    assert with_watched(watches, "b") == watches
    assert without_watched(watches, "b") == AccountChoices(("a/b/c",))
    assert without_watched(watches, "c") == watches


def test_one_hears_of_a_skill_by_it_or_by_its_namespace():
    assert targets_for("upload~acme/skills/lint") == ("upload~acme/skills/lint", "upload~acme")
