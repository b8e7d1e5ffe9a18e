"""What people do with namespaces: members, visibility with its preview, quotas; and skills that are narrower."""

from typing import Any

import msgspec
import pytest

from tests.support.acting import principal_for
from tests.support.envs import open_test_env, run_until_quiet, submit_skill
from tests.support.people import make_account
from tests.support.system_reads import get_submission
from vskill_client.wire.base import NoParameters
from vskill_core.errors import (
    InvalidInput,
    NotFound,
    NotPermitted,
    QuotaExceeded,
    RateLimited,
    SourceGone,
)
from vskill_platform.actions.action import Action
from vskill_platform.actions.people.access import CHANGE_ACCESS, PREVIEW_ACCESS, ChangeAccess, PreviewAccess
from vskill_platform.actions.people.namespace_policy import (
    CHANGE_VISIBILITY,
    MAKE_PUBLIC,
    PREVIEW_VISIBILITY,
    SET_QUOTAS,
    ChangeVisibility,
    ExplainedNamespace,
    PreviewVisibility,
    SetQuotas,
)
from vskill_platform.actions.people.namespaces import (
    ADD_MEMBER,
    HAND_OVER,
    LEAVE_NAMESPACE,
    LIST_NAMESPACES,
    REMOVE_MEMBER,
    SHOW_NAMESPACE,
    AddMember,
    HandOver,
    NamespaceRequest,
    NamespaceView,
    RemoveMember,
)
from vskill_platform.actions.people.teams import (
    ADD_TO_TEAM,
    CREATE_TEAM,
    DELETE_TEAM,
    REMOVE_FROM_TEAM,
    ChangeTeam,
    ExplainedTeam,
)
from vskill_platform.actions.principal import ANYBODY, OPERATOR, Principal, audiences_of, resolve
from vskill_platform.actions.skills.versions import (
    NARROW_SKILL,
    WIDEN_SKILL,
    NarrowSkill,
    SkillVisibility,
    WidenSkill,
)
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import (
    Namespace,
    NamespaceRole,
    RegistryMode,
    Visibility,
    may_read,
)
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.stages.rescan import request_rescan
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.people.namespaces import read_namespace
from vskill_platform.store.recall.first_management import finish_preparations
from vskill_platform.store.skills.collections import add_skills, create_collection
from vskill_platform.store.skills.quotas import HOUR_MS, SubmissionHour, read_usage
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.store.submissions.submission_lists import find_submissions

pytestmark = pytest.mark.anyio

MIA, BOB, EVE = principal_for("user:mia"), principal_for("user:bob"), principal_for("admin:eve")
OWN = "upload~mia"
SKILL = "upload~mia/skills/tidy"
WHY = "a test"


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path, rate_limits="off") as opened:
        for name, role in (("mia", Role.AUTHOR), ("bob", Role.AUTHOR), ("eve", Role.ADMIN)):
            await make_account(opened, name, role)
        yield opened


async def publish(env, *slugs: str, body: str = "") -> None:
    by = SubmittedBy("mia", audiences_of(await resolve(MIA)))
    for slug in slugs:
        await submit_skill(slug, body, namespace="mia", by=by)
    await run_until_quiet(env)


async def set_visibility(env, to: str, by=MIA) -> NamespaceView:
    return await CHANGE_VISIBILITY(env, by, ChangeVisibility(name=OWN, to=Visibility(to), reason=WHY))


async def add(env, member: str, role: str, by=MIA) -> NamespaceView:
    return await ADD_MEMBER(env, by, AddMember(name=OWN, member=member, role=NamespaceRole(role), reason=WHY))


async def reads(principal: Principal, audience: str) -> bool:
    return may_read(audience, audiences_of(await resolve(principal)))


async def submission_of(skill: PublishedSkill) -> Submission:
    assert skill.submission is not None
    return await get_submission(skill.submission)


async def test_managing_a_namespace_gives_every_record_its_audience_and_then_hides_it(env):
    await publish(env, "tidy", "lint")
    shown = await set_visibility(env, "team")
    assert (shown.visibility, shown.preparing) == (Visibility.TEAM, None)
    assert shown.usage is not None and shown.usage.skills == 2
    skill = await get_skill(SKILL)
    assert skill.audience == f"ns:{OWN}"
    assert (await submission_of(skill)).audience == f"ns:{OWN}"
    for alias in skill.aliases:
        entry = await env.kv.get(keys.alias_key(alias, SKILL))
        assert msgspec.json.decode(entry.value) == {"audience": f"ns:{OWN}"}
    assert await reads(MIA, f"ns:{OWN}")
    assert not await reads(BOB, f"ns:{OWN}") and not await reads(ANYBODY, f"ns:{OWN}")


async def test_another_namespace_is_left_alone(env):
    await submit_skill("other", namespace="bob")
    await publish(env, "tidy")
    await set_visibility(env, "team")
    other = await get_skill("upload~bob/skills/other")
    assert other.audience == "public" and (await submission_of(other)).audience == "public"


async def test_what_is_published_later_is_hidden_from_the_beginning(env):
    await set_visibility(env, "internal")
    await publish(env, "tidy")
    assert (await get_skill(SKILL)).audience == f"ns:{OWN}"
    assert await reads(BOB, f"ns:{OWN}") and not await reads(ANYBODY, f"ns:{OWN}")


async def test_the_job_finishes_what_a_process_left_in_the_middle(env):
    """The namespace stays readable until every record has its audience, and each skill is counted once."""
    await publish(env, "tidy", "lint")
    record = Namespace(OWN, Visibility.PUBLIC, Visibility.TEAM, preparing_since=1)
    await env.kv.put(keys.namespace(OWN), msgspec.json.encode(record))
    await env.kv.put(keys.CONTROL_NAMESPACES, b"{}")
    assert await reads(ANYBODY, f"ns:{OWN}")
    assert await finish_preparations(request_rescan) == 1
    settled, _ = await read_namespace(OWN)
    assert (settled.visibility, settled.preparing, settled.preparing_since) == (Visibility.TEAM, None, 0)
    assert (await read_usage(OWN)).skills == 2
    assert await finish_preparations(request_rescan) == 0


async def test_the_preview_tells_what_would_disappear_and_nothing_changes(env):
    await publish(env, "tidy", "lint")
    await create_collection("picks", by="system", reason=WHY)
    await add_skills("picks", [SKILL], by="system", reason=WHY)
    request = PreviewVisibility(name=OWN, to=Visibility.TEAM)
    seen = await PREVIEW_VISIBILITY(env, MIA, request)
    gone = seen.reach.public.disappears
    assert (gone.skills, gone.submissions, gone.in_collections) == (2, 2, 1)
    assert gone.names == ("upload~mia/skills/lint", SKILL)
    assert seen.reach.accounts.disappears == gone and seen.reach.public.appears.skills == 0
    internal = await PREVIEW_VISIBILITY(env, MIA, PreviewVisibility(name=OWN, to=Visibility.INTERNAL))
    assert (internal.reach.public.disappears.skills, internal.reach.accounts.disappears.skills) == (2, 0)
    assert (await read_namespace(OWN))[0] == Namespace(OWN)
    await set_visibility(env, "team")
    back = await PREVIEW_VISIBILITY(env, EVE, PreviewVisibility(name=OWN, to=Visibility.PUBLIC))
    assert back.needs_reviewer and back.reach.public.appears.skills == 2
    assert (await PREVIEW_VISIBILITY(env, MIA, request)).reach.public.disappears.skills == 0


async def test_only_a_reviewer_makes_a_namespace_public_again(env):
    await publish(env, "tidy")
    await set_visibility(env, "team")
    with pytest.raises(NotPermitted, match="Only reviewers and admins"):
        await set_visibility(env, "public")
    assert (await set_visibility(env, "internal")).visibility is Visibility.INTERNAL
    with pytest.raises(NotPermitted):
        await MAKE_PUBLIC(env, MIA, ExplainedNamespace(name=OWN, reason=WHY))
    shown = await MAKE_PUBLIC(env, EVE, ExplainedNamespace(name=OWN, reason=WHY))
    assert shown.visibility is Visibility.PUBLIC and await reads(ANYBODY, f"ns:{OWN}")


async def test_members_read_by_name_and_by_team_and_only_as_long_as_they_belong(env):
    await set_visibility(env, "team")
    await add(env, "bob", "reader")
    assert await reads(BOB, f"ns:{OWN}")
    await REMOVE_MEMBER(env, MIA, RemoveMember(name=OWN, member="bob", reason=WHY))
    assert not await reads(BOB, f"ns:{OWN}")
    await CREATE_TEAM(env, EVE, ExplainedTeam(name="crew", reason=WHY))
    await ADD_TO_TEAM(env, EVE, ChangeTeam(name="crew", accounts=("bob",), reason=WHY))
    await add(env, "team:crew", "reader", by=EVE)
    assert await reads(BOB, f"ns:{OWN}")
    with pytest.raises(InvalidInput, match=f"is a member of {OWN}"):
        await DELETE_TEAM(env, EVE, ExplainedTeam(name="crew", reason=WHY))
    await REMOVE_FROM_TEAM(env, EVE, ChangeTeam(name="crew", accounts=("bob",), reason=WHY))
    assert not await reads(BOB, f"ns:{OWN}")
    await REMOVE_MEMBER(env, EVE, RemoveMember(name=OWN, member="team:crew", reason=WHY))
    await DELETE_TEAM(env, EVE, ExplainedTeam(name="crew", reason=WHY))


async def test_a_team_that_one_does_not_belong_to_answers_as_one_that_is_not_there(env):
    await CREATE_TEAM(env, EVE, ExplainedTeam(name="crew", reason=WHY))
    refusals = []
    for name in ("crew", "none"):
        with pytest.raises(InvalidInput) as refused:
            await add(env, f"team:{name}", "reader")
        refusals.append(str(refused.value).replace(name, "NAME"))
    assert refusals[0] == refusals[1]


async def test_a_stranger_learns_nothing_about_a_namespace(env):
    """Neither that it has a record, nor who belongs to it."""
    await set_visibility(env, "team")
    refusals = []
    for name in (OWN, "upload~nobody"):
        asked: tuple[tuple[Action[Any, Any], Any], ...] = (
            (SHOW_NAMESPACE, NamespaceRequest(name=name)),
            (PREVIEW_VISIBILITY, PreviewVisibility(name=name, to=Visibility.TEAM)),
            (ADD_MEMBER, AddMember(name=name, member="bob", role=NamespaceRole.OWNER, reason=WHY)),
            (LEAVE_NAMESPACE, NamespaceRequest(name=name)),
        )
        for action, request in asked:
            with pytest.raises(NotFound if action is LEAVE_NAMESPACE else NotPermitted) as refused:
                await action(env, BOB, request)
            refusals.append((str(refused.value), refused.value.details))
    assert str(refusals[:4]).replace(OWN, "NAME") == str(refusals[4:]).replace("upload~nobody", "NAME")
    listed = (await LIST_NAMESPACES(env, BOB, NoParameters())).namespaces
    assert [one.name for one in listed] == ["upload~bob"]
    assert [one.name for one in (await LIST_NAMESPACES(env, EVE, NoParameters())).namespaces] == [
        "upload~eve",
        OWN,
    ]


async def test_the_last_owner_stays_until_there_is_another(env):
    acme = "acme"
    await ADD_MEMBER(env, OPERATOR, AddMember(name=acme, member="mia", role=NamespaceRole.OWNER, reason=WHY))
    for attempt in (
        LEAVE_NAMESPACE(env, MIA, NamespaceRequest(name=acme)),
        REMOVE_MEMBER(env, MIA, RemoveMember(name=acme, member="mia", reason=WHY)),
        ADD_MEMBER(env, MIA, AddMember(name=acme, member="mia", role=NamespaceRole.READER, reason=WHY)),
    ):
        with pytest.raises(InvalidInput, match="only owner"):
            await attempt
    await ADD_MEMBER(env, MIA, AddMember(name=acme, member="bob", role=NamespaceRole.OWNER, reason=WHY))
    await LEAVE_NAMESPACE(env, MIA, NamespaceRequest(name=acme))
    with pytest.raises(NotPermitted):
        await SHOW_NAMESPACE(env, MIA, NamespaceRequest(name=acme))
    with pytest.raises(NotFound):
        await LEAVE_NAMESPACE(env, EVE, NamespaceRequest(name=acme))


async def test_a_namespace_is_handed_over_in_one_step_and_its_skills_keep_their_names(env):
    await publish(env, "tidy")
    await add(env, "bob", "author")
    await CREATE_TEAM(env, EVE, ExplainedTeam(name="writers", reason=WHY))
    with pytest.raises(InvalidInput, match="There is no team 'nobody'"):
        await HAND_OVER(env, EVE, HandOver(name=OWN, to="team:nobody", reason=WHY))
    with pytest.raises(NotPermitted):
        await HAND_OVER(env, BOB, HandOver(name=OWN, to="bob", reason=WHY))
    done = await HAND_OVER(env, EVE, HandOver(name=OWN, to="team:writers", reason="mia left"))
    assert [(one.member, one.role) for one in done.members] == [
        ("team:writers", NamespaceRole.OWNER),
        ("bob", NamespaceRole.AUTHOR),
    ]
    assert done.owner_by_name is None
    with pytest.raises(NotPermitted):
        await SHOW_NAMESPACE(env, MIA, NamespaceRequest(name=OWN))
    assert (await get_skill(SKILL)).canonical == SKILL
    refused, entry = (await list_audit(limit=2)).items
    assert (entry.action, entry.reason) == ("namespace handed over", "mia left")
    assert (refused.action, refused.outcome) == ("namespace.show", "refused")


async def test_a_change_that_changes_nothing_leaves_no_trace(env):
    await set_visibility(env, "team")
    await add(env, "bob", "reader")
    before = len((await list_audit()).items)
    await set_visibility(env, "team")
    await add(env, "bob", "reader")
    assert len((await list_audit()).items) == before


async def test_a_narrower_skill_takes_its_submission_and_its_names_with_it(env):
    await publish(env, "tidy")
    with pytest.raises(InvalidInput, match="is unmanaged"):
        await NARROW_SKILL(env, MIA, NarrowSkill(skill=SKILL, to=SkillVisibility.TEAM, reason=WHY))
    await set_visibility(env, "public")
    done = await NARROW_SKILL(env, MIA, NarrowSkill(skill=SKILL, to=SkillVisibility.TEAM, reason=WHY))
    assert (done.visibility, done.narrowed) == (Visibility.PUBLIC, Visibility.TEAM)
    skill = await get_skill(SKILL)
    audience = f"ns:{OWN}:team"
    assert (skill.audience, (await submission_of(skill)).audience) == (audience, audience)
    for alias in skill.aliases:
        entry = await env.kv.get(keys.alias_key(alias, SKILL))
        assert msgspec.json.decode(entry.value) == {"audience": audience}
    sketch = await env.kv.get(keys.sketch(SKILL))
    assert msgspec.json.decode(sketch.value)["audience"] == audience
    with pytest.raises(NotPermitted, match="public again"):
        await NARROW_SKILL(env, MIA, NarrowSkill(skill=SKILL, to=SkillVisibility.NAMESPACE, reason=WHY))
    await WIDEN_SKILL(env, EVE, WidenSkill(skill=SKILL, reason=WHY))
    assert (await get_skill(SKILL)).audience == f"ns:{OWN}"


async def test_a_narrower_skill_stays_so_with_its_next_version(env):
    await publish(env, "tidy")
    await set_visibility(env, "public")
    await NARROW_SKILL(env, MIA, NarrowSkill(skill=SKILL, to=SkillVisibility.INTERNAL, reason=WHY))
    await publish(env, "tidy", body="More of it.")
    skill = await get_skill(SKILL)
    assert len(skill.versions) == 2 and skill.audience == f"ns:{OWN}:internal"
    assert (await submission_of(skill)).audience == f"ns:{OWN}:internal"


async def test_the_registry_becomes_internal_after_a_preview(env):
    await publish(env, "tidy", "lint")
    await create_collection("picks", by="system", reason=WHY)
    await add_skills("picks", [SKILL], by="system", reason=WHY)
    seen = await PREVIEW_ACCESS(env, EVE, PreviewAccess(mode=RegistryMode.INTERNAL))
    gone = seen.reach.public.disappears
    assert (gone.skills, gone.submissions, gone.in_collections) == (2, 2, 1)
    assert seen.reach.accounts.disappears.skills == 0
    assert (await CHANGE_ACCESS(env, EVE, ChangeAccess(reason=WHY))).mode is RegistryMode.PUBLIC
    await CHANGE_ACCESS(env, EVE, ChangeAccess(mode=RegistryMode.INTERNAL, reason=WHY))
    assert audiences_of(await resolve(ANYBODY)) == frozenset()
    assert await reads(BOB, "public")


async def test_quotas_need_a_managed_namespace(env):
    request = SetQuotas(name=OWN, skills=3, reason=WHY)
    with pytest.raises(InvalidInput, match="is unmanaged"):
        await SET_QUOTAS(env, EVE, request)
    await set_visibility(env, "public")
    shown = await SET_QUOTAS(env, EVE, request)
    assert (shown.quotas.skills, shown.quotas.bytes) == (3, None)


async def test_a_namespace_holds_as_many_skills_as_its_quota_allows(env):
    """A new skill is refused at the door; what is there may still be published again."""
    await set_visibility(env, "team")
    await SET_QUOTAS(env, EVE, SetQuotas(name=OWN, skills=1, reason=WHY))
    await publish(env, "tidy")
    with pytest.raises(QuotaExceeded, match="quota of 1 skills and uses 1") as refused:
        await publish(env, "lint")
    assert str(refused.value.details["fix"]).startswith("ask an admin")
    await publish(env, "tidy", body="More of it.")
    assert len((await get_skill(SKILL)).versions) == 2
    shown = await SHOW_NAMESPACE(env, MIA, NamespaceRequest(name=OWN))
    assert shown.usage is not None and (shown.usage.skills, shown.quotas.skills) == (1, 1)


async def test_what_a_quota_forbids_only_at_the_end_is_refused_there_with_the_reason(env):
    """Two new skills were on their way when there was room for one."""
    await set_visibility(env, "team")
    await SET_QUOTAS(env, EVE, SetQuotas(name=OWN, skills=1, reason=WHY))
    by = SubmittedBy("mia", audiences_of(await resolve(MIA)))
    sent = [(await submit_skill(slug, namespace="mia", by=by)).submission for slug in ("tidy", "lint")]
    await run_until_quiet(env)
    ended = [await get_submission(one.id) for one in sent if one is not None]
    assert sorted(one.state.value for one in ended) == ["PUBLISHED", "REJECTED"]
    refused = next(one for one in ended if one.state is State.REJECTED)
    assert refused.decision is not None and refused.decision.rule_ids == ("quota_exceeded",)
    assert "quota of 1 skills" in refused.why
    assert (await read_usage(OWN)).skills == 1


async def test_bytes_are_counted_for_every_version_and_limited(env):
    await publish(env, "tidy")
    await set_visibility(env, "team")
    first = (await read_usage(OWN)).bytes
    await publish(env, "tidy", body="More of it.")
    second = (await read_usage(OWN)).bytes
    assert 0 < first < second - first
    await SET_QUOTAS(env, EVE, SetQuotas(name=OWN, bytes=second + 1, reason=WHY))
    await publish(env, "lint")
    found = await find_submissions(audiences=frozenset({f"ns:{OWN}"}))
    assert [one.state.value for one in found.items if one.skill_name == "lint"] == ["REJECTED"]
    assert (await read_usage(OWN)).bytes == second
    await SET_QUOTAS(env, EVE, SetQuotas(name=OWN, bytes=second, reason=WHY))
    with pytest.raises(QuotaExceeded, match="bytes"):
        await publish(env, "more")


async def test_submissions_are_limited_by_the_hour_and_duplicates_are_none(env):
    await set_visibility(env, "team")
    await SET_QUOTAS(env, EVE, SetQuotas(name=OWN, submissions_per_hour=2, reason=WHY))
    await publish(env, "tidy")
    await publish(env, "tidy")
    await publish(env, "tidy", body="More of it.")
    with pytest.raises(RateLimited, match="2 submissions an hour") as refused:
        await publish(env, "lint")
    assert 0 < int(str(refused.value.details["retry_after_s"])) <= 3600
    with pytest.raises(RateLimited):
        await publish(env, "tidy", body="Even more of it.")
    await publish(env, "tidy", body="More of it.")
    assert (await read_usage(OWN)).submissions == 2
    hour = SubmissionHour(env.kv.now() - HOUR_MS, 2)
    await env.kv.put(keys.usage(OWN, "submissions"), msgspec.json.encode(hour))
    await publish(env, "lint")
    assert (await read_usage(OWN)).submissions == 1


async def test_the_place_of_a_narrower_skill_is_a_repository_that_is_not_there(env):
    """Its namespace is public; who may not read the skill does not hear that it is on its way."""
    await publish(env, "tidy")
    await set_visibility(env, "public")
    await NARROW_SKILL(env, MIA, NarrowSkill(skill=SKILL, to=SkillVisibility.TEAM, reason=WHY))
    with pytest.raises(SourceGone):
        await submit_skill("tidy", namespace="mia", by=SubmittedBy("bob", audiences_of(await resolve(BOB))))
