"""Own review: what maintainers of a namespace that reviews itself decide, what stays with reviewers, and that nothing
which only a team approved leaves the team, by whatever way."""

import base64
import contextlib
import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tests.support.acting import approve as approve_as
from tests.support.acting import principal_for, restore, take_down
from tests.support.ci_jobs import let_in_job
from tests.support.envs import active_env, open_test_env, run_until_quiet, skill_files, submit_skill
from tests.support.faults import ListedSources
from tests.support.people import make_account
from tests.support.system_reads import get_submission
from vskill_client.wire.base import NoParameters
from vskill_client.wire.submissions import SubmissionRequest
from vskill_core.content import SkillFile
from vskill_core.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    NotPermitted,
    NotSignedIn,
    PlatformError,
    TransitionError,
)
from vskill_core.findings import Finding, FindingCategory, FindingKind, Severity, StaticReport
from vskill_core.identity import normalise, submission_id, upload_identity
from vskill_core.statement import read_statement
from vskill_platform.actions.people.access import CHANGE_ACCESS, ChangeAccess
from vskill_platform.actions.people.namespace_policy import (
    CHANGE_VISIBILITY,
    MAKE_PUBLIC,
    SET_REVIEWERS,
    ChangeVisibility,
    ExplainedNamespace,
    SetReviewers,
)
from vskill_platform.actions.people.namespaces import (
    ADD_MEMBER,
    HAND_OVER,
    SHOW_NAMESPACE,
    AddMember,
    HandOver,
    NamespaceRequest,
)
from vskill_platform.actions.principal import ANYBODY, OPERATOR, Principal, audiences_of, resolve
from vskill_platform.actions.review.appeals import APPEAL, AppealSubmission
from vskill_platform.actions.review.evidence import gather_evidence, preview_decision, read_run
from vskill_platform.actions.review.review import APPROVE, REJECT, REQUEST_CHANGE, DecideSubmission
from vskill_platform.actions.review.review_queue import WAITING, ListWaiting
from vskill_platform.actions.skills.skill_names import find_skill
from vskill_platform.actions.skills.versions import (
    NARROW_SKILL,
    UNYANK,
    WIDEN_SKILL,
    YANK,
    NarrowSkill,
    SkillVisibility,
    WidenSkill,
    WithdrawVersion,
)
from vskill_platform.actions.submissions.submissions import RERUN, SHOW, RerunSubmission
from vskill_platform.actions.telling.notifications import LIST_NOTIFICATIONS, ListNotifications
from vskill_platform.actions.verdicts.rule_figures import RULE_FIGURES
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import (
    EVERYTHING,
    Member,
    Namespace,
    NamespaceRole,
    OwnReview,
    Reviewers,
    Visibility,
    may_read,
)
from vskill_platform.domain.skills.skill import Certification, OpenReview, PublishedSkill, VersionStatus
from vskill_platform.domain.skills.skill_changes import put_under_review
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import MOST_SUBMITTERS, Submission
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.intake.submit import submit_repository
from vskill_platform.queue.jobs import notify
from vskill_platform.stages.repo_check import read_runs, start_runs
from vskill_platform.stages.rescan import request_rescan
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import AuditNote, list_audit
from vskill_platform.store.people.namespaces import NamespaceChange, assert_directory, change_namespace
from vskill_platform.store.skills.skills import get_skill, read_skill, update_skill
from vskill_platform.worker_context import require_env

pytestmark = pytest.mark.anyio

CREW = "upload~crew"
SKILL = f"{CREW}/skills/tidy"
WHY = "a test"
MIA, MAX, SAM, ZOE = (principal_for(f"user:{name}") for name in ("mia", "max", "sam", "zoe"))
ADA = principal_for("admin:ada")
#: Whatever is private waits for a reviewer.
POLICY = 'rules:\n  - {name: look, when: "skill.private", then: review, say: look at it}\n'
CRITICAL, STRONG, DOUBTFUL = "It is critical.", "It is strong.", "It is doubtful."


def malice(severity: Severity, rule: str = "X-1") -> Finding:
    return Finding(rule, severity, FindingCategory.EXFILTRATION, FindingKind.MALICE, "SKILL.md", 1)


FOUND = {
    CRITICAL: (malice(Severity.CRITICAL),),
    STRONG: (malice(Severity.HIGH),),
    DOUBTFUL: tuple(malice(Severity.MEDIUM, f"X-{number}") for number in range(3)),
}


class Words:
    """A scanner that finds what a skill says about itself."""

    ruleset = "rules-1"

    async def scan(self, files: Sequence[SkillFile]) -> StaticReport:
        text = b"".join(file.data for file in files).decode()
        found = next((findings for word, findings in FOUND.items() if word in text), ())
        return StaticReport(self.ruleset, findings=found, capabilities=())


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    """Mia owns the namespace crew, max maintains it, sam writes for it; zoe has nothing to do with it."""
    async with open_test_env(
        request.param, tmp_path, rate_limits="off", policy_text=POLICY, scanner=Words()
    ) as opened:
        await furnish(opened)
        yield opened


async def furnish(env) -> None:
    for name in ("mia", "max", "sam", "zoe"):
        await make_account(env, name, Role.AUTHOR)
    await make_account(env, "ada", Role.ADMIN)
    await join("mia", "owner")
    await join("max", "maintainer")
    await join("sam", "author")
    await show_to("team")
    await review_by("own")


async def join(account: str, role: str) -> None:
    asked = AddMember(name=CREW, member=account, role=NamespaceRole(role), reason=WHY)
    await ADD_MEMBER(require_env(), OPERATOR, asked)


async def show_to(to: str, by: Principal = ADA) -> None:
    await CHANGE_VISIBILITY(require_env(), by, ChangeVisibility(name=CREW, to=Visibility(to), reason=WHY))


async def review_by(who: str, by: Principal = MIA) -> Any:
    return await SET_REVIEWERS(require_env(), by, SetReviewers(name=CREW, to=Reviewers(who), reason=WHY))


async def submit(name: str = "tidy", body: str = "", by: str | None = "sam") -> Submission:
    done = await submit_skill(name, body, namespace="crew", by=SubmittedBy(by, EVERYTHING))
    await run_until_quiet(require_env())
    assert done.submission is not None
    return await get_submission(done.submission.id)


def about(record: Submission, reason: str = "looked") -> DecideSubmission:
    return DecideSubmission(submission_id=record.id, run=record.run, digest=record.digest, reason=reason)


async def approve(record: Submission, by: Principal = MAX) -> Submission:
    await APPROVE(require_env(), by, about(record))
    await run_until_quiet(require_env())
    return await get_submission(record.id)


async def rerun(record: Submission) -> Submission:
    await RERUN(require_env(), ADA, RerunSubmission(submission_id=record.id, reason=WHY))
    await run_until_quiet(require_env())
    return await get_submission(record.id)


async def waiting_for(who: Principal) -> list[str]:
    return [one.skill_name for one in (await WAITING(require_env(), who, ListWaiting())).items]


async def reads(who: Principal, name: str = SKILL) -> bool:
    try:
        await find_skill(await resolve(who), name)
    except NotFound:
        return False
    return True


async def reads_submission(who: Principal, record: Submission) -> bool:
    return may_read((await get_submission(record.id)).audience, audiences_of(await resolve(who)))


async def widen(version: str | None, by: Principal = ADA) -> None:
    await WIDEN_SKILL(require_env(), by, WidenSkill(skill=SKILL, version=version, reason=WHY))


# What a team approval is.


async def test_a_maintainer_approves_for_the_team_and_it_is_marked_everywhere(env):
    record = await submit()
    assert record.state is State.NEEDS_REVIEW and record.decision is not None and record.decision.own_review
    done = await approve(record)
    assert done.state is State.PUBLISHED and done.audience == f"ns:{CREW}:team"
    assert done.approval is not None and (done.approval.team, done.approval.by) == (True, "maintainer:max")
    (step,) = (one for one in done.history if one.to is State.AUTO_APPROVED)
    assert step.actor == "maintainer:max" and step.reason == "looked (decided within its namespace)"
    skill = await get_skill(SKILL)
    (ref,) = skill.versions
    assert ref.team_approved and skill.narrowed is Visibility.TEAM and skill.audience == f"ns:{CREW}:team"
    assert ref.certification is Certification.SCANNED and not skill.trust.reviewed
    attested = await env.kv.get(keys.attestation(SKILL, ref.number))
    assert attested is not None
    payload = base64.b64decode(msgspec.json.decode(attested.value)["payload"])
    predicate = read_statement(payload).predicate
    assert (predicate.team_approved, predicate.reviewed, predicate.certification) == (True, False, "SCANNED")


async def test_the_history_names_the_maintainer_to_nobody_else(env):
    done = await approve(await submit())
    for who, name in ((ZOE, None), (SAM, "a maintainer of its namespace"), (MAX, "maintainer:max")):
        if name is not None:
            shown = await SHOW(env, who, SubmissionRequest(submission_id=done.id))
            assert shown.approved_by_team and name in {one.actor for one in shown.history}
        else:
            with pytest.raises(NotFound):
                await SHOW(env, who, SubmissionRequest(submission_id=done.id))


async def test_a_maintainer_rejects_and_the_appeal_is_for_reviewers(env):
    record = await submit()
    await REJECT(env, MAX, about(record))
    refused = await get_submission(record.id)
    assert refused.state is State.REJECTED and refused.history[-1].actor == "maintainer:max"
    await APPEAL(env, SAM, AppealSubmission(submission_id=record.id, reason="it is fine"))
    appealed = await get_submission(record.id)
    assert appealed.state is State.NEEDS_REVIEW and await waiting_for(MAX) == []
    with pytest.raises(NotPermitted):
        await APPROVE(env, MAX, about(appealed))
    assert (await approve(appealed, by=ADA)).state is State.PUBLISHED


# Who may not.


@pytest.mark.parametrize("who", [SAM, ZOE, ANYBODY])
async def test_whoever_is_no_maintainer_may_not(env, who):
    record = await submit()
    with pytest.raises((NotPermitted, NotSignedIn)):
        await APPROVE(env, who, about(record))
    with pytest.raises((NotPermitted, NotSignedIn)):
        await WAITING(env, who, ListWaiting())
    assert (await get_submission(record.id)).state is State.NEEDS_REVIEW


async def test_no_submitter_may_not_the_last_an_earlier_one_nor_one_who_became_maintainer_later(env):
    await submit(by="max")
    record = await submit(body="Otherwise.", by="sam")
    assert record.submitters == ("sam", "max")
    await join("sam", "maintainer")
    for who in (SAM, MAX):
        with pytest.raises(NotPermitted):
            await APPROVE(env, who, about(record))
        assert await waiting_for(who) == []
    assert await waiting_for(MIA) == ["tidy"]


async def test_where_not_every_submitter_is_known_reviewers_decide(env):
    anonymous = await submit("nobodys", by=None)
    crowd = await submit("crowds")
    many = tuple(f"user{number}" for number in range(MOST_SUBMITTERS - 1))
    await env.kv.put(crowd.key, msgspec.json.encode(msgspec.structs.replace(crowd, earlier_submitters=many)))
    for record in (anonymous, crowd):
        with pytest.raises(NotPermitted, match="Not everybody who submitted it is known"):
            await APPROVE(env, MAX, about(record))
    assert await waiting_for(MAX) == [] and sorted(await waiting_for(ADA)) == ["crowds", "nobodys"]


URL = "https://github.com/acme/tidy"


@contextlib.asynccontextmanager
async def waiting_repository(env):
    """A skill in a repository of a namespace that reviews itself: sam submitted it, and it waits."""
    for account, role in (("mia", "owner"), ("max", "maintainer"), ("sam", "author")):
        asked = AddMember(name="acme", member=account, role=NamespaceRole(role), reason=WHY)
        await ADD_MEMBER(env, OPERATOR, asked)
    await CHANGE_VISIBILITY(env, ADA, ChangeVisibility(name="acme", to=Visibility.TEAM, reason=WHY))
    await SET_REVIEWERS(env, MIA, SetReviewers(name="acme", to=Reviewers.OWN, reason=WHY))
    sources = ListedSources(env.blobs)
    sources.places[normalise(URL).key] = skill_files("tidy")
    with active_env(env, sources=sources):
        yield await submit_again(SubmittedBy("sam", EVERYTHING))


async def submit_again(by: SubmittedBy) -> Submission:
    done = await submit_repository(URL, by=by)
    await run_until_quiet(require_env())
    assert done.submission is not None
    return await get_submission(done.submission.id)


async def test_what_a_ci_job_submits_is_for_reviewers_whoever_submitted_it_before(env):
    async with waiting_repository(env) as before:
        await REJECT(env, MAX, about(before))
        job = (await let_in_job(URL))[1]
        by_ci = await submit_again(SubmittedBy(None, EVERYTHING, ci=job))
        assert by_ci.state is State.NEEDS_REVIEW and by_ci.submitters == ("sam",)
        with pytest.raises(NotPermitted, match="Not everybody who submitted it is known"):
            await APPROVE(require_env(), MAX, about(by_ci))


async def test_what_the_check_of_a_repository_brings_is_for_reviewers(env):
    async with waiting_repository(env) as before:
        done = await approve(before)
        identity = normalise(URL)
        assert done.state is State.PUBLISHED
        assert await start_runs(identity, "1" * 40, await read_runs(identity)) == 1
        await run_until_quiet(require_env())
        brought = await get_submission(done.id)
        assert brought.state is State.NEEDS_REVIEW and brought.submitters == ("sam",)
        with pytest.raises(NotPermitted, match="Not everybody who submitted it is known"):
            await APPROVE(require_env(), MAX, about(brought))
        by_sam = await submit_again(SubmittedBy("sam", EVERYTHING))
        assert (await approve(by_sam)).state is State.PUBLISHED


async def test_whoever_has_a_repository_looked_at_anew_submits_it(env):
    async with waiting_repository(env) as before:
        await RERUN(require_env(), MAX, RerunSubmission(submission_id=before.id, reason=WHY))
        await run_until_quiet(require_env())
        again = await get_submission(before.id)
        assert again.state is State.NEEDS_REVIEW and again.submitters == ("max", "sam")
        with pytest.raises(NotPermitted, match="who did not submit it"):
            await APPROVE(require_env(), MAX, about(again))
        by_ada = await rerun(again)
        assert by_ada.submitters == ("max", "sam")
        with pytest.raises(NotPermitted, match="Not everybody who submitted it is known"):
            await APPROVE(require_env(), MIA, about(by_ada))


async def test_what_nobody_submits_while_it_waits_for_a_worker_is_for_reviewers(env):
    async with waiting_repository(env) as before:
        await RERUN(require_env(), SAM, RerunSubmission(submission_id=before.id, reason=WHY))
        refreshed = await submit_again(SubmittedBy(None, EVERYTHING))
        assert refreshed.state is State.NEEDS_REVIEW and refreshed.run == 2
        with pytest.raises(NotPermitted, match="Not everybody who submitted it is known"):
            await APPROVE(require_env(), MAX, about(refreshed))


async def test_an_upload_that_runs_again_is_its_submitters_still(env):
    again = await rerun(await submit())
    assert again.run == 2 and (await approve(again)).state is State.PUBLISHED


async def test_whoever_proved_the_repository_may_not(env):
    record = await submit()
    proof = Member("user:max", NamespaceRole.MAINTAINER, 1, "file", repo=record.identity.repo_key)

    async def decide(known: Namespace) -> NamespaceChange:
        return NamespaceChange(msgspec.structs.replace(known, members=(*known.members, proof)))

    await change_namespace(CREW, decide, AuditNote("namespace changed", CREW, "system", WHY))
    with pytest.raises(NotPermitted, match="You proved that its repository is yours"):
        await APPROVE(env, MAX, about(record))
    assert await waiting_for(MIA) == ["tidy"]


async def test_a_maintainer_of_one_repository_is_none_of_the_namespace(env):
    record = await submit()
    zoe = Member("user:zoe", NamespaceRole.MAINTAINER, 1, "file", repo=record.identity.repo_key)

    async def decide(known: Namespace) -> NamespaceChange:
        return NamespaceChange(msgspec.structs.replace(known, members=(*known.members, zoe)))

    await change_namespace(CREW, decide, AuditNote("namespace changed", CREW, "system", WHY))
    with pytest.raises(NotPermitted):
        await APPROVE(env, ZOE, about(record))


async def test_a_token_of_another_namespace_or_without_the_scope_may_not(env):
    record = await submit()
    bound = msgspec.structs.replace(MAX, namespace="upload~max")
    weak = msgspec.structs.replace(MAX, scopes=frozenset({"read", "submit"}))
    for who in (bound, weak):
        with pytest.raises(NotPermitted):
            await APPROVE(env, who, about(record))
    scoped = msgspec.structs.replace(MAX, namespace=CREW, scopes=frozenset({"read", "own"}))
    assert (await approve(record, by=scoped)).state is State.PUBLISHED


async def test_whoever_stops_to_be_a_maintainer_meanwhile_decides_nothing(env):
    """The decision asserts, in its commit, everything that the right rests on."""
    record = await submit()
    _, asserted = await assert_directory()
    await join("max", "reader")
    with pytest.raises(Conflict):
        await env.kv.commit([asserted])
    with pytest.raises(NotPermitted):
        await APPROVE(env, MAX, about(record))


# What they may not decide.


@pytest.mark.parametrize("body", [CRITICAL, STRONG])
async def test_what_is_critical_or_malicious_is_for_reviewers(env, body):
    record = await submit(body=body)
    assert record.state is State.NEEDS_REVIEW
    assert record.decision is not None and not record.decision.own_review
    assert await waiting_for(MAX) == []
    with pytest.raises((NotPermitted, TransitionError)):
        await APPROVE(env, MAX, about(record))


async def test_a_doubt_without_the_verdicts_that_the_policy_needs_is_for_reviewers(tmp_path):
    needs = "needs: {judges: 1}"
    async with open_test_env(
        "memory", tmp_path, rate_limits="off", policy_text=needs, scanner=Words()
    ) as env:
        await furnish(env)
        record = await submit(body=DOUBTFUL)
        assert record.state is State.NEEDS_REVIEW
        assert record.decision is not None and not record.decision.own_review
        with pytest.raises(NotPermitted, match="only reviewers of the registry decide"):
            await APPROVE(env, MAX, about(record))


async def test_what_other_rules_scanned_is_scanned_again_before_a_maintainer_approves_it(env):
    record = await submit()

    class Tomorrow(Words):
        ruleset = "rules-2"

    with active_env(env, scanner=Tomorrow()) as tomorrow:
        with pytest.raises(TransitionError, match="scanner's rules have changed") as refused:
            await APPROVE(tomorrow, MAX, about(record))
        assert refused.value.details["fix"] == "run it again"
        assert (await approve(await rerun(record))).state is State.PUBLISHED


async def test_bytes_that_a_reviewer_rejected_or_took_down_stay_with_reviewers(env):
    record = await submit()
    await REJECT(env, ADA, about(record))
    again = await submit(by="zed")
    if again.state is not State.NEEDS_REVIEW:
        again = await rerun(record)
    assert again.state is State.NEEDS_REVIEW and again.decision is not None and not again.decision.own_review
    with pytest.raises(NotPermitted):
        await APPROVE(env, MAX, about(again))


async def refuses(record: Submission, by: Principal = MAX) -> bool:
    with pytest.raises(NotPermitted, match="reviewer"):
        await APPROVE(require_env(), by, about(record))
    return True


async def test_bytes_that_a_reviewer_took_down_stay_with_reviewers_at_another_place(env):
    done = await approve(await submit())
    async with waiting_repository(env) as elsewhere:
        assert elsewhere.digest == done.digest and elsewhere.decision is not None
        assert elsewhere.decision.own_review
        await take_down(SKILL, by="admin:ada", reason="bad")
        assert await refuses(elsewhere)
        env.clock.advance(1)
        await restore(SKILL, by="admin:ada", reason="it was fine")
        assert (await approve(elsewhere)).state is State.PUBLISHED


async def test_bytes_that_a_reviewer_asked_about_stay_with_reviewers_after_a_new_run(env):
    record = await submit()
    await REQUEST_CHANGE(env, ADA, about(record, "Why?"))
    again = await rerun(record)
    assert again.change_request is None and await refuses(again)
    async with waiting_repository(env) as elsewhere:
        assert elsewhere.digest == record.digest and await refuses(elsewhere)
        env.clock.advance(1)
        await approve(again, by=ADA)
        looked_again = await submit_again(SubmittedBy("sam", EVERYTHING))
        assert (await approve(looked_again)).state is State.PUBLISHED


async def test_a_team_approval_does_not_bring_back_what_a_reviewer_took_down(env):
    done = await approve(await submit())
    await take_down(SKILL, by="admin:ada", reason="bad")
    taken = await get_submission(done.id)
    assert taken.state is State.NEEDS_REVIEW and await waiting_for(MAX) == []
    with pytest.raises(NotPermitted):
        await APPROVE(env, MAX, about(taken))
    assert await refuses(await rerun(taken))


async def test_a_take_down_after_a_team_approval_ends_before_it_is_published(env):
    again = await rerun(await approve(await submit()))
    await APPROVE(env, MAX, about(again))
    await take_down(SKILL, by="admin:ada", reason="bad")
    await run_until_quiet(env)
    ended = await get_submission(again.id)
    assert ended.state is State.NEEDS_REVIEW and ended.published_version is not None
    assert (await get_skill(SKILL)).current_version is None and await waiting_for(MAX) == []


async def test_what_a_reviewer_has_asked_about_stays_with_reviewers(env):
    record = await submit()
    await REQUEST_CHANGE(env, ADA, about(record, "Why?"))
    with pytest.raises(NotPermitted):
        await APPROVE(env, MAX, about(await get_submission(record.id)))
    assert await waiting_for(MAX) == []


async def test_a_live_version_under_review_is_for_reviewers(env):
    done = await approve(await submit())

    def doubt(skill: PublishedSkill) -> PublishedSkill:
        return put_under_review(skill, skill.versions[0].digest, OpenReview("odd", 1), 1)

    await update_skill(SKILL, doubt)
    assert await waiting_for(ADA) == ["tidy"] and await waiting_for(MAX) == []
    for action in (APPROVE, REJECT):
        with pytest.raises((NotPermitted, TransitionError)):
            await action(env, MAX, about(done))


async def test_a_team_approval_does_not_end_the_review_of_a_live_version(env):
    done = await approve(await submit())

    def doubt(skill: PublishedSkill) -> PublishedSkill:
        return put_under_review(skill, skill.versions[0].digest, OpenReview("odd", 1), 1)

    await update_skill(SKILL, doubt)
    ended = await approve(await rerun(done))
    assert ended.state is State.PUBLISHED
    (ref,) = (await get_skill(SKILL)).versions
    assert ref.review is not None and await waiting_for(ADA) == ["tidy"] and await waiting_for(MAX) == []
    await APPROVE(env, ADA, about(ended))
    assert (await get_skill(SKILL)).versions[0].review is None


async def test_what_others_read_already_is_updated_by_reviewers(env):
    """So that a team approval takes nothing away from the readers of an internal namespace."""
    await approve(await submit(), by=ADA)
    await show_to("internal")
    assert await reads(ZOE)
    update = await submit(body="More.")
    with pytest.raises(NotPermitted, match="Others than its team read the skill already"):
        await APPROVE(env, MAX, about(update))
    fresh = await submit("fresh")
    assert (await approve(fresh)).audience == f"ns:{CREW}:team"


async def test_nothing_is_learnt_from_a_team(env):
    """Neither for rules, nor for similar decisions, nor for what comes next."""
    before = await RULE_FIGURES(env, ADA, NoParameters())
    await approve(await submit("first"))
    await REJECT(env, MAX, about(await submit("second")))
    assert await RULE_FIGURES(env, ADA, NoParameters()) == before
    page = await env.kv.scan(keys.ruling.prefix)
    assert page.items == ()


# The setting.


async def test_owners_set_it_where_the_namespace_is_hidden_and_no_admin_forbids_it(env):
    with pytest.raises(NotPermitted):
        await review_by("registry", by=MAX)
    assert (await review_by("registry")).review is Reviewers.REGISTRY
    record = await submit()
    with pytest.raises(NotPermitted):
        await APPROVE(env, MAX, about(record))
    await CHANGE_ACCESS(env, ADA, ChangeAccess(own_review=OwnReview.FORBIDDEN, reason=WHY))
    with pytest.raises(NotPermitted, match="forbids"):
        await review_by("own")
    await CHANGE_ACCESS(env, ADA, ChangeAccess(own_review=OwnReview.ALLOWED, reason=WHY))
    await review_by("own")
    await CHANGE_ACCESS(env, ADA, ChangeAccess(own_review=OwnReview.FORBIDDEN, reason=WHY))
    with pytest.raises(NotPermitted):
        await APPROVE(env, MAX, about(record))
    await CHANGE_ACCESS(env, ADA, ChangeAccess(own_review=OwnReview.ALLOWED, reason=WHY))
    await MAKE_PUBLIC(env, ADA, ExplainedNamespace(name=CREW, reason=WHY))
    await review_by("registry")
    with pytest.raises(InvalidInput, match="not hidden"):
        await review_by("own")
    assert {one.action for one in (await list_audit()).items} >= {"namespace review", "registry access"}


async def test_a_namespace_that_was_made_public_meanwhile_decides_nothing(env):
    record = await submit()
    await MAKE_PUBLIC(env, ADA, ExplainedNamespace(name=CREW, reason=WHY))
    with pytest.raises(NotPermitted):
        await APPROVE(env, MAX, about(record))


# Approve, then flip.


@pytest.mark.parametrize("to", ["internal", "public"])
async def test_nothing_that_only_its_own_people_approved_is_shown_when_the_namespace_is(env, to):
    record = await approve(await submit())
    await show_to(to)
    assert not await reads(ZOE) and not await reads(ANYBODY) and await reads(SAM)
    assert not await reads_submission(ZOE, record) and await reads_submission(SAM, record)
    await submit(body="More.", by="sam")
    assert not await reads(ZOE) and not await reads(ANYBODY)
    assert (await SHOW_NAMESPACE(env, MIA, NamespaceRequest(name=CREW))).kept_to_team == (SKILL,)


async def test_a_flip_between_the_approval_and_the_publication_shows_nothing(env):
    record = await submit()
    await APPROVE(env, MAX, about(record))
    await MAKE_PUBLIC(env, ADA, ExplainedNamespace(name=CREW, reason=WHY))
    assert not await reads_submission(ZOE, record)
    await run_until_quiet(env)
    assert (await get_submission(record.id)).state is State.PUBLISHED
    assert not await reads(ZOE) and not await reads_submission(ZOE, record)


async def test_no_maintainer_widens_it_and_a_reviewer_agrees_with_what_was_looked_at(env):
    await approve(await submit())
    await show_to("internal")
    for to in SkillVisibility:
        if to is not SkillVisibility.TEAM:
            with pytest.raises(NotPermitted, match="until a reviewer agrees"):
                await NARROW_SKILL(env, MIA, NarrowSkill(skill=SKILL, to=to, reason=WHY))
    with pytest.raises(NotPermitted):
        await widen("1.0.0", by=MIA)
    for version in (None, "0.9.0"):
        with pytest.raises(InvalidInput, match="agrees with all versions"):
            await widen(version)
    newest = (await get_skill(SKILL)).versions[-1].number
    await widen(newest)
    skill = await get_skill(SKILL)
    assert not skill.kept_to_team and await reads(ZOE) and not await reads(ANYBODY)
    assert skill.versions[0].certification is Certification.CERTIFIED
    assert skill.versions[0].kept_by == "admin:ada"


async def test_withdrawn_versions_keep_it_too_because_they_may_come_back(env):
    first = await approve(await submit())
    await take_down(SKILL, by="admin:ada", reason="bad")
    clean = await approve(await submit(body="Clean."), by=ADA)
    assert clean.state is State.PUBLISHED and clean.id == first.id
    await MAKE_PUBLIC(env, ADA, ExplainedNamespace(name=CREW, reason=WHY))
    assert not await reads(ANYBODY)
    await restore(SKILL, by="admin:ada", reason="it was fine")
    assert not await reads(ANYBODY)
    await widen((await get_skill(SKILL)).versions[-1].number)
    assert await reads(ANYBODY)


async def test_handing_the_namespace_over_changes_nothing_about_what_is_kept(env):
    await approve(await submit())
    await HAND_OVER(env, ADA, HandOver(name=CREW, to="zoe", reason=WHY))
    await show_to("public", by=ADA)
    assert not await reads(ANYBODY) and await reads(ZOE)
    with pytest.raises(NotPermitted):
        await NARROW_SKILL(env, ZOE, NarrowSkill(skill=SKILL, to=SkillVisibility.NAMESPACE, reason=WHY))


async def test_the_same_bytes_elsewhere_are_decided_on_their_own(env):
    """An approval by a team says nothing about a public submission of the same content."""
    record = await submit(body=DOUBTFUL)
    assert record.decision is not None and record.decision.own_review
    await approve(record)
    done = await submit_skill("tidy", DOUBTFUL, namespace="zoe", by=SubmittedBy("zoe", EVERYTHING))
    await run_until_quiet(env)
    assert done.submission is not None
    other = await get_submission(done.submission.id)
    assert other.digest == record.digest and other.state is State.NEEDS_REVIEW


# Rescans.


async def test_a_rescan_lets_a_team_approval_count_for_doubts_and_for_nothing_worse(env):
    record = await submit(body=DOUBTFUL)
    await approve(record)
    skill = await get_skill(SKILL)
    await request_rescan(skill, skill.versions[0])
    await run_until_quiet(env)
    kept = (await get_skill(SKILL)).versions[0]
    assert kept.status is VersionStatus.LIVE and kept.review is None and kept.team_approved
    assert kept.certification is Certification.SCANNED
    report = StaticReport(env.scanner.ruleset, findings=FOUND[CRITICAL], capabilities=())
    await env.kv.put(keys.scan(str(record.digest), report.ruleset), msgspec.json.encode(report))
    await request_rescan(skill, skill.versions[0])
    await run_until_quiet(env)
    assert (await get_skill(SKILL)).versions[0].status is VersionStatus.TAKEN_DOWN


# What a maintainer is shown and told.


async def test_the_queue_of_a_maintainer_holds_what_they_may_decide(env):
    await submit("one")
    await submit("own", by="max")
    await submit("grave", CRITICAL)
    await submit_skill("other", CRITICAL, namespace="zoe", by=SubmittedBy("zoe", EVERYTHING))
    await run_until_quiet(env)
    found = await WAITING(env, MAX, ListWaiting())
    assert [one.skill_name for one in found.items] == ["one"]
    assert (found.total, found.beyond, found.after) == (1, 0, None)
    everything = await WAITING(env, ADA, ListWaiting())
    assert everything.total == 4
    assert {one.skill_name for one in everything.items if one.own_review} == {"one", "own"}


async def test_the_evidence_for_a_maintainer_holds_nothing_of_other_namespaces(env):
    """Nor what reviewers decided and how rules did elsewhere, nor names of reviewers."""
    done = await submit_skill("secret", CRITICAL, namespace="zoe", by=SubmittedBy("zoe", EVERYTHING))
    await run_until_quiet(env)
    assert done.submission is not None
    await approve_as(done.submission.id, by="admin:ada", reason="canaryreason")
    record = await submit(body=DOUBTFUL)
    for who, sees in ((ADA, True), (MAX, False)):
        reader = await resolve(who)
        shown, _ = await read_run(reader, record.id, None)
        found = await gather_evidence(env, reader, shown)
        assert bool(found.figures) is sees
        preview = await preview_decision(reader, shown)
        assert any("until a reviewer" in one for one in preview.approve) is not sees
        if not sees:
            assert found.similar == () and found.reported is None
    grave = await submit("grave", CRITICAL)
    with pytest.raises(NotPermitted):
        await read_run(await resolve(MAX), grave.id, None)


async def notified(env, account: str) -> list[str]:
    found = await LIST_NOTIFICATIONS(env, principal_for(f"user:{account}"), ListNotifications())
    return [one.text for one in found.notifications if "waits for" in one.text]


async def test_maintainers_are_told_of_what_they_may_decide_until_it_is_decided(env):
    state = await notify({})
    record = await submit()
    await submit("grave", CRITICAL)
    state = await notify(state)
    told = {name: len(await notified(env, name)) for name in ("max", "mia", "sam", "zoe")}
    assert told == {"max": 1, "mia": 1, "sam": 0, "zoe": 0}
    ada = await LIST_NOTIFICATIONS(env, ADA, ListNotifications())
    assert sum("waits for" in one.text for one in ada.notifications) == 2
    await approve(record)
    await notify(state)
    assert await notified(env, "max") == []


# Every way at once.


async def step(env, chance: random.Random, agreed: set[str], teams: set[str]) -> None:
    """One thing that somebody does, or is refused. `agreed` are contents with a reviewer's word, `teams` those that a
    team alone approved."""
    record = await get_submission(submission_id(upload_identity("crew", "tidy")))
    who = chance.choice([MIA, MAX, SAM, ADA])
    newest = (await read_skill(SKILL))[0]
    version = newest.versions[-1].number if newest is not None and chance.random() < 0.7 else None
    seen = about(record)

    async def approve_it() -> None:
        await APPROVE(env, who, seen)
        (agreed if who is ADA else teams).add(str(record.digest))

    async def widen_it() -> None:
        await widen(version, by=who)
        agreed.update(ref.digest for ref in (await get_skill(SKILL)).versions)

    ways = [
        approve_it,
        approve_it,
        widen_it,
        lambda: submit(body=f"Number {chance.randrange(4)}.", by=chance.choice(["sam", "max", "zoe"])),
        lambda: rerun(record),
        lambda: REJECT(env, who, seen),
        lambda: show_to(chance.choice(["team", "internal", "public"]), by=who),
        lambda: review_by(chance.choice(["own", "own", "registry"])),
        lambda: NARROW_SKILL(
            env, who, NarrowSkill(skill=SKILL, to=chance.choice(list(SkillVisibility)), reason=WHY)
        ),
        lambda: take_down(SKILL, version, by="admin:ada", reason=WHY),
        lambda: restore(SKILL, version, by="admin:ada", reason=WHY),
        lambda: YANK(env, who, WithdrawVersion(skill=SKILL, version=version or "1.0.0", reason=WHY)),
        lambda: UNYANK(env, who, WithdrawVersion(skill=SKILL, version=version or "1.0.0", reason=WHY)),
        lambda: APPEAL(env, SAM, AppealSubmission(submission_id=record.id, reason=WHY)),
    ]
    with contextlib.suppress(PlatformError):
        await chance.choice(ways)()
    await run_until_quiet(env)


@pytest.mark.parametrize("seed", range(15))
async def test_no_history_shows_others_a_content_that_only_a_team_approved(tmp_path, seed):
    chance = random.Random(seed)
    async with open_test_env("memory", tmp_path, rate_limits="off", policy_text=POLICY) as env:
        await furnish(env)
        agreed: set[str] = set()
        teams: set[str] = set()
        await submit()
        for _ in range(60):
            await step(env, chance, agreed, teams)
            found, _ = await read_skill(SKILL)
            held = {ref.digest for ref in found.versions} & (teams - agreed) if found is not None else set()
            if held:
                assert not await reads(ZOE) and not await reads(ANYBODY)
