"""Approve, then widen: a skill that only its own people approved is in a namespace that was made public since. Every
route is asked about it, as everybody outside the team; what is kept and what is not there are answered alike."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.leaks.requests import requests_for
from tests.leaks.test_routes import OUTSIDERS, READS, WRITES, ask, check_for_differences, written
from tests.leaks.world import ADMIN, HIDDEN_OWNER, LeakWorld, facts_of, open_leak_world
from tests.support.envs import active_env, run_until_quiet, skill_files
from tests.support.system_reads import get_submission
from tests.support.walking import walk
from vskill_platform.actions.people.namespace_policy import (
    MAKE_PUBLIC,
    SET_REVIEWERS,
    ExplainedNamespace,
    SetReviewers,
)
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.review.review import APPROVE, DecideSubmission
from vskill_platform.domain.people.namespace import EVERYTHING, Reviewers
from vskill_platform.domain.submissions.states import State
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.intake.submit import submit_repository
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.web.routing import Endpoint

pytestmark = pytest.mark.anyio

KEPT_REPO, KEPT_NAME, WORD, WHY = "keptrepo", "keptname", "keptword", "a test"
#: Of the same length, and there is nothing in either.
ABSENT_REPO = "gonerepo"
POLICY = """rules:
  - {name: look, when: 'skill.name.startsWith("kept")', then: review, say: look at it}
"""


async def keep(world: LeakWorld) -> None:
    """Approve a skill within its namespace, and make the namespace public."""
    env, mia = world.env, Principal("mia", Role.AUTHOR)
    asked = SetReviewers(name=HIDDEN_OWNER, to=Reviewers.OWN, reason=WHY)
    await SET_REVIEWERS(env, mia, asked)
    repo = f"https://github.com/{HIDDEN_OWNER}/{KEPT_REPO}"
    world.sources.put(repo, f"skills/{KEPT_NAME}", skill_files(KEPT_NAME, f"It says {WORD}.", "1.0.0"))
    done = await submit_repository(repo, f"skills/{KEPT_NAME}", by=SubmittedBy("sam", EVERYTHING))
    await run_until_quiet(env)
    assert done.submission is not None
    record = await get_submission(done.submission.id)
    assert record.state is State.NEEDS_REVIEW, record.history[-1]
    decision = DecideSubmission(submission_id=record.id, run=1, digest=record.digest, reason="keptdecision")
    await APPROVE(env, mia, decision)
    await run_until_quiet(env)
    await MAKE_PUBLIC(env, ADMIN, ExplainedNamespace(name=HIDDEN_OWNER, reason=WHY))
    skill = await get_skill(f"{HIDDEN_OWNER}/{KEPT_REPO}/{KEPT_NAME}")
    digest, content = str(skill.current_digest), str(skill.content_hash)
    report = "01keptreport000000000000000"[:26]
    world.hidden = facts_of(HIDDEN_OWNER, KEPT_REPO, KEPT_NAME, digest, content, report)
    absent = facts_of(HIDDEN_OWNER, ABSENT_REPO, "gonename", "e" * 64, "f" * len(content), report)
    world.absent = absent


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[LeakWorld]:
    async with open_leak_world(tmp_path, policy_text=POLICY) as opened:
        with active_env(opened.env):
            await keep(opened)
        yield opened


@pytest.fixture
async def twin(tmp_path_factory: Any, world: LeakWorld) -> AsyncIterator[LeakWorld]:
    """A registry that is equal to `world` in everything."""
    folder = tmp_path_factory.mktemp("twin")
    async with open_leak_world(folder, policy_text=POLICY, signing=world.env.signing) as opened:
        with active_env(opened.env):
            await keep(opened)
        yield opened


def canaries(world: LeakWorld) -> tuple[str, ...]:
    own = (KEPT_REPO, KEPT_NAME, WORD, "keptdecision")
    return (*own, world.hidden.digest, world.hidden.content_hash, world.hidden.submission)


async def check(world: LeakWorld, asker: str, endpoint: Endpoint) -> None:
    for facts in (world.visible, world.hidden):
        for asked in requests_for(endpoint, facts):
            text = written(await ask(world, world.askers[asker], asked)).lower()
            told = asked.label.lower()
            found = [one for one in canaries(world) if one.lower() in text and one.lower() not in told]
            assert not found, (asked.label, found, text[:3000])


async def test_its_own_people_see_it_and_the_rest_of_the_namespace_is_public(world: LeakWorld) -> None:
    """So that what the walks do not find is hidden by the rule, and not missing."""
    address = f"/api/v1/skills/{world.hidden.canonical}"
    inside = await world.client.get(address, headers=world.askers["mia by token"].headers)
    outside = await world.client.get(address, headers=world.askers["zoe by token"].headers)
    assert (inside.status_code, outside.status_code) == (200, 404)
    listed = (await world.client.get("/api/v1/skills", params={"owner": HIDDEN_OWNER})).text
    assert "canaryname" in listed and KEPT_NAME not in listed


@pytest.mark.parametrize("asker", OUTSIDERS)
@pytest.mark.parametrize("routes", [READS, WRITES], ids=["reads", "writes"])
async def test_no_answer_holds_what_only_its_own_people_approved(
    world: LeakWorld, routes: list[Endpoint], asker: str
) -> None:
    await walk(routes, partial(check, world, asker))


@pytest.mark.parametrize("asker", ["anonymous", "zoe by token"])
async def test_what_is_kept_is_answered_as_what_is_not_there(
    world: LeakWorld, twin: LeakWorld, asker: str
) -> None:
    await walk(READS, partial(check_for_differences, world, twin, asker))
