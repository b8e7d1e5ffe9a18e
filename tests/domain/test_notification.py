"""What an account is told and watches, as plain data."""

from vskill_platform.domain.telling.notification import (
    DAY_MS,
    DIGEST_AT_MS,
    AccountChoices,
    Notification,
    Topic,
    next_digest_at,
    targets_for,
    topics_heard,
    with_watched,
    without_watched,
)


def test_later_notifications_sort_first_and_no_two_have_one_place():
    def moment(at: int, name: str = "e") -> str:
        return Notification(name, Topic.OWN, "submission.decided", at, "told").moment

    assert moment(1_800_000_000_000) == "98200000000000-e"
    assert moment(1) == "99999999999999-e"
    assert moment(2) < moment(1) and moment(1, "a") != moment(1, "b")


def test_a_notification_is_unread_until_after_the_account_was_told_of_it():
    told = Notification("e", Topic.OWN, "submission.decided", 5, "told", told_at=9)
    assert told.is_unread(8) and not told.is_unread(9)


def test_what_is_watched_stands_once_in_the_order_of_names():
    watches = with_watched(with_watched(AccountChoices(), "b"), "a/b/c")
    assert watches == AccountChoices(("a/b/c", "b"))
    assert with_watched(watches, "b") == watches
    assert without_watched(watches, "b") == AccountChoices(("a/b/c",))
    assert without_watched(watches, "c") == watches


def test_one_hears_of_a_skill_by_it_or_by_its_namespace():
    assert targets_for("upload~acme/skills/lint") == ("upload~acme/skills/lint", "upload~acme")


def about(topic: Topic, *, skill: str = "", submission: str = "") -> Notification:
    return Notification("e", topic, "a.type", 5, "told", skill=skill, submission=submission)


def test_each_leads_to_the_page_where_one_looks_or_decides():
    assert about(Topic.REPORTS, skill="acme/x y/lint").path == "/admin/reports?skill=acme/x%20y/lint"
    assert about(Topic.ALERTS, skill="acme/x/lint").path == "/queue"
    assert about(Topic.OWN, skill="acme/x/lint", submission="sub_1").path == "/submissions/sub_1"
    assert about(Topic.WATCHED, skill="acme/x/lint").path == "/skills/acme/x/lint"


def test_daily_mail_is_made_at_the_next_six_in_the_morning():
    six = 20_000 * DAY_MS + DIGEST_AT_MS
    assert [next_digest_at(now) for now in (six - DAY_MS, six - 1)] == [six, six]
    assert [next_digest_at(now) for now in (six, six + 1)] == [six + DAY_MS, six + DAY_MS]


def test_reviewers_hear_of_reviews_and_reports_and_admins_of_alerts():
    everybody = {Topic.OWN, Topic.WATCHED}
    assert topics_heard(reads_all=False, operates=False) == everybody
    assert topics_heard(reads_all=True, operates=False) == everybody | {Topic.REVIEWS, Topic.REPORTS}
    assert topics_heard(reads_all=False, operates=True) == everybody | {Topic.ALERTS}
    assert topics_heard(reads_all=True, operates=True) == frozenset(Topic)
