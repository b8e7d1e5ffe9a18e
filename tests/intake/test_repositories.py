"""Submitting repositories: the six outcomes, discovery, bulk, places that moved, and a host that is down."""

import asyncio

import pytest

from tests.support.envs import active_env, open_test_env, run_until_quiet
from tests.support.git_server import skill_md
from tests.support.system_reads import get_submission
from vskill_core.errors import (
    InvalidInput,
    NoSkillFound,
    SourceGone,
    SourceUnavailable,
    Unsupported,
)
from vskill_core.findings import Severity
from vskill_core.identity import Identity, normalise, submission_id
from vskill_platform.domain.blocklist import BlockEntry, name_target, place_target, repository_target
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.states import State
from vskill_platform.intake.discover import Wanted, discover, submit_many, submit_skills
from vskill_platform.intake.submit import IntakeOutcome, Submitted, submit_repository
from vskill_platform.sources.router import SourceRouter, UploadSource
from vskill_platform.store.recall.blocklist import add_block
from vskill_platform.submission_store import count_submissions

pytestmark = pytest.mark.anyio

URL = "https://github.com/ann/tools"


def record(submitted: Submitted):
    assert submitted.submission is not None
    return submitted.submission


async def state_of(url: str, path: str = "") -> State:
    return (await get_submission(submission_id(normalise(url, path)))).state


# The six outcomes.


async def test_created_and_published_at_the_commit_that_intake_saw(env, server):
    repo = server.repo("ann/tools", {"fmt/SKILL.md": skill_md("fmt")})
    first = await submit_repository(URL, "fmt")
    assert first.outcome is IntakeOutcome.CREATED
    assert record(first).commit == repo.head()
    repo.commit({"README.md": b"the skill is gone by now"})
    await run_until_quiet(env)
    done = await get_submission(record(first).id)
    assert (done.state, done.commit) == (State.PUBLISHED, record(first).commit)


async def test_duplicate_while_it_waits_and_the_newest_commit_is_verified(env, server):
    repo = server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    await submit_repository(URL)
    newer = repo.commit({"SKILL.md": skill_md("tools", "newer")})
    again = await submit_repository(URL)
    assert (again.outcome, record(again).commit) == (IntakeOutcome.DUPLICATE, newer)
    assert await run_until_quiet(env) == 1
    assert (await get_submission(record(again).id)).commit == newer


async def test_already_verified_while_the_head_is_what_is_published(env, server):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    await submit_repository(URL)
    await run_until_quiet(env)
    again = await submit_repository(URL)
    assert again.outcome is IntakeOutcome.ALREADY_VERIFIED
    assert record(again).run == 1


async def test_B11_requeued_when_the_head_has_moved_on(env, server):
    repo = server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    await submit_repository(URL)
    await run_until_quiet(env)
    repo.commit({"SKILL.md": skill_md("tools", "changed")})
    again = await submit_repository(URL)
    assert (again.outcome, record(again).run) == (IntakeOutcome.REQUEUED, 2)
    await run_until_quiet(env)
    assert (await get_submission(record(again).id)).published_version == "1.0.1"


async def test_another_commit_with_the_same_folder_is_a_run_but_no_new_version(env, server):
    repo = server.repo("ann/tools", {"fmt/SKILL.md": skill_md("fmt")})
    await submit_repository(URL, "fmt")
    await run_until_quiet(env)
    repo.commit({"fmt/SKILL.md": skill_md("fmt"), "README.md": b"other"})
    assert (await submit_repository(URL, "fmt")).outcome is IntakeOutcome.REQUEUED
    await run_until_quiet(env)
    done = await get_submission(submission_id(normalise(URL, "fmt")))
    assert (done.state, done.run, done.published_version) == (State.PUBLISHED, 2, "1.0.0")


@pytest.mark.parametrize("target", [place_target, repository_target])
async def test_blocked_is_said_before_the_host_is_asked(env, server, target):
    identity = normalise(URL)
    await add_block(BlockEntry(target(identity), Severity.HIGH, "stolen", "admin:eve", env.kv.now()))
    refused = await submit_repository(URL)
    assert (refused.outcome, refused.submission) == (IntakeOutcome.BLOCKED, None)
    assert "stolen" in refused.reason
    assert server.requests == []


async def test_A17_no_skill_is_refused_at_every_door_and_nothing_is_written(env, server):
    server.repo("ann/tools", {"README.md": b"x", "s/SKILL.md": skill_md("s")})
    with pytest.raises(NoSkillFound, match="there is one in s"):
        await submit_repository(URL)
    (bulk,) = await submit_many([Wanted(URL)])
    assert isinstance(bulk.error, NoSkillFound)
    with pytest.raises(NoSkillFound):
        await submit_skills(URL, "docs")
    assert (await count_submissions(audiences=EVERYTHING)).total == 0


# What is not one of them.


@pytest.mark.parametrize("fault", [503, "hang"])
async def test_B16_a_host_that_is_down_is_a_503_and_nothing_is_created(tmp_path, server, fault):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    server.faults["/ann"] = fault
    async with open_test_env("memory", tmp_path, source_rewrites=(server.rewrite(),), fetch_budget_ms=500):
        with pytest.raises(SourceUnavailable) as caught:
            await submit_repository(URL)
        assert (caught.value.status, caught.value.text("host")) == (503, "github.com")
        assert (await count_submissions(audiences=EVERYTHING)).total == 0


async def test_B16_a_host_that_goes_down_after_intake_is_waited_for(env, server, tmp_path):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    first = await submit_repository(URL)
    async with open_test_env(
        "memory", tmp_path / "other", active=False, source_rewrites=(server.rewrite(),)
    ) as other:
        server.faults["/ann"] = 503
        with active_env(env, sources=other.sources) as elsewhere:
            await run_until_quiet(elsewhere)
    waiting = await get_submission(record(first).id)
    assert (waiting.state, waiting.attempts.failed, waiting.attempts.waiting_for) == (
        State.RECEIVED,
        0,
        "github.com",
    )


async def test_a_repository_that_is_gone_is_said_to_be(env, server):
    with pytest.raises(SourceGone):
        await submit_repository("https://github.com/ann/none")


async def test_a_host_that_is_not_allowed_is_refused(env):
    for url in ("https://git.example.org/a/b", "https://127.0.0.1/a/b", "https://localhost/a/b"):
        with pytest.raises(InvalidInput):
            await submit_repository(url)
    assert (await count_submissions(audiences=EVERYTHING)).total == 0


async def test_B17_without_git_repositories_are_refused_with_that_reason(env):
    without = SourceRouter(UploadSource(env.blobs), None)
    with active_env(env, sources=without), pytest.raises(Unsupported, match="git command is not installed"):
        await submit_repository(URL)


async def test_D8_a_hundred_submissions_of_one_place_at_once_are_one(env, server):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    outcomes = await asyncio.gather(*(submit_repository(URL) for _ in range(100)))
    assert sorted(one.outcome for one in outcomes) == [IntakeOutcome.CREATED] + [IntakeOutcome.DUPLICATE] * 99
    assert server.asked("/info/refs") <= 3
    assert (await count_submissions(audiences=EVERYTHING)).total == 1


async def test_submitted_again_during_the_run_with_the_same_commit_changes_nothing(env, server):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    number = record(await submit_repository(URL)).id
    scanner = env.scanner

    class Submitting:
        ruleset = scanner.ruleset

        async def scan(self, files):
            self.again = await submit_repository(URL)
            return await scanner.scan(files)

    with active_env(env, scanner=Submitting()) as working:
        await run_until_quiet(working)
    done = await get_submission(number)
    assert (done.state, done.run) == (State.PUBLISHED, 1)


async def test_D15_pushed_and_submitted_during_the_run_is_looked_at(env, server):
    repo = server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    number = record(await submit_repository(URL)).id
    scanner = env.scanner

    class Pushing:
        ruleset = scanner.ruleset
        pushed = ""

        async def scan(self, files):
            if not self.pushed:
                self.pushed = await asyncio.to_thread(repo.commit, {"SKILL.md": skill_md("tools", "newer")})
                assert (await submit_repository(URL)).outcome is IntakeOutcome.DUPLICATE
            return await scanner.scan(files)

    pushing = Pushing()
    with active_env(env, scanner=pushing) as working:
        await run_until_quiet(working)
    done = await get_submission(number)
    assert (done.state, done.run, done.commit) == (State.PUBLISHED, 2, pushing.pushed)


# Discovery and bulk.


def many() -> dict[str, bytes]:
    return {
        "skills/b/SKILL.md": skill_md("bee"),
        "skills/a/SKILL.md": skill_md("ay"),
        "skills/bad/SKILL.md": b"not text: \xff",
        "docs/README.md": b"x",
        "deep/er/c/SKILL.md": skill_md("see"),
    }


async def test_every_folder_with_a_skill_is_found_in_order_with_its_name(env, server):
    server.repo("ann/tools", many())
    found = await discover(URL)
    assert [(one.path, one.name) for one in found.skills] == [
        ("deep/er/c", "see"),
        ("skills/a", "ay"),
        ("skills/b", "bee"),
        ("skills/bad", None),
    ]
    assert "not UTF-8" in found.skills[3].problem
    below = await discover(f"{URL}/tree/main/skills")
    assert [one.path for one in below.skills] == ["skills/a", "skills/b", "skills/bad"]
    assert (await discover(URL, "skills/a")).skills[0].path == "skills/a"


async def test_a_repository_is_submitted_whole_and_fetched_once(env, server):
    server.repo("ann/tools", many())
    done = await submit_skills(URL)
    assert [one.submitted.outcome for one in done.results if one.submitted] == [IntakeOutcome.CREATED] * 4
    await run_until_quiet(env)
    assert await state_of(URL, "skills/a") is State.PUBLISHED
    assert await state_of(URL, "deep/er/c") is State.PUBLISHED
    assert await state_of(URL, "skills/bad") is State.REJECTED
    assert server.asked("/info/refs") == 1
    again = await submit_skills(URL)
    assert [one.submitted.outcome.value for one in again.results if one.submitted] == [
        "already verified",
        "already verified",
        "already verified",
        "requeued",
    ]


async def test_a_skill_at_the_place_is_the_one_that_is_meant_unless_all_are(env, server):
    server.repo("ann/tools", {"SKILL.md": skill_md("root"), "examples/x/SKILL.md": skill_md("x")})
    one = await submit_skills(URL)
    assert ([r.skill_path for r in one.results], one.not_submitted) == ([""], ("examples/x",))
    every = await submit_skills(URL, every=True)
    assert [r.skill_path for r in every.results] == ["", "examples/x"]


async def test_folders_that_no_address_can_name_are_told(env, server):
    server.repo(
        "ann/tools",
        {"a/SKILL.md": skill_md("a"), "b\nc/SKILL.md": skill_md("b"), "d /SKILL.md": skill_md("d")},
    )
    done = await submit_skills(URL)
    assert [one.skill_path for one in done.results] == ["a"]
    assert done.skipped == ("'b\\\\nc'", "'d '") or len(done.skipped) == 2


async def test_bulk_is_settled_each_with_its_own_outcome(env, server):
    server.repo("ann/tools", many())
    server.repo("bob/one", {"SKILL.md": skill_md("one")})
    server.faults["/eve"] = 500
    results = await submit_many(
        [
            Wanted(URL, "skills/a"),
            Wanted("not an address at all"),
            Wanted("https://github.com/eve/down"),
            Wanted("https://github.com/bob/one"),
            Wanted("https://github.com/bob/none"),
        ]
    )
    kinds = [one.submitted.outcome if one.submitted else type(one.error) for one in results]
    assert kinds == [
        IntakeOutcome.CREATED,
        InvalidInput,
        SourceUnavailable,
        IntakeOutcome.CREATED,
        SourceGone,
    ]


async def test_a_blocked_name_from_the_front_matter_is_refused_at_the_door(env, server):
    server.repo("ann/tools", {"innocent/SKILL.md": skill_md("evil-twin")})
    await add_block(BlockEntry(name_target("evil-twin"), Severity.HIGH, "malware", "admin:eve", env.kv.now()))
    assert (await submit_repository(URL, "innocent")).outcome is IntakeOutcome.BLOCKED


# Places that moved.


@pytest.fixture
async def moving(tmp_path, server):
    host = f"127.0.0.1:{server.port}"
    async with open_test_env("sqlite", tmp_path, allowed_private_hosts=(f"http://{host}",)) as opened:
        yield opened, f"http://{host}"


async def test_D13_a_renamed_repository_keeps_its_submission(moving, server):
    env, base = moving
    server.repo("ann/old", {"s/SKILL.md": skill_md("s")})
    before = record(await submit_repository(f"{base}/ann/old", "s"))
    await run_until_quiet(env)
    (server.root / "ann" / "old.git").rename(server.root / "ann" / "new.git")
    server.faults["/ann/old"] = f"{base}/ann/new"
    again = await submit_repository(f"{base}/ann/old", "s")
    assert (record(again).id, again.outcome) == (before.id, IntakeOutcome.ALREADY_VERIFIED)
    direct = await submit_repository(f"{base}/ann/new", "s")
    assert record(direct).id == before.id
    assert (await count_submissions(audiences=EVERYTHING)).total == 1


async def test_an_old_address_that_was_never_submitted_is_the_new_place(moving, server):
    _, base = moving
    server.repo("ann/new", {"SKILL.md": skill_md("s")})
    server.faults["/ann/old"] = f"{base}/ann/new"
    first = record(await submit_repository(f"{base}/ann/old"))
    assert first.identity == Identity(f"127.0.0.1:{server.port}", "ann", "new")
    assert record(await submit_repository(f"{base}/ann/new")).id == first.id


async def test_a_blocked_place_is_blocked_under_its_old_address_too(moving, server):
    env, base = moving
    server.repo("ann/new", {"SKILL.md": skill_md("s")})
    server.faults["/ann/old"] = f"{base}/ann/new"
    target = repository_target(normalise(f"{base}/ann/new"))
    await add_block(BlockEntry(target, Severity.HIGH, "stolen", "admin:eve", env.kv.now()))
    assert (await submit_repository(f"{base}/ann/old")).outcome is IntakeOutcome.BLOCKED
