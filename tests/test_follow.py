"""Followed repositories, over real git: what comes, changes and goes, in which limits, and what is said of a repository
that moved, was emptied or rewritten."""

import msgspec
import pytest
from msgspec.structs import replace

from tests.support.acting import take_down
from tests.support.envs import active_env, open_test_env, run_until_quiet
from tests.support.git_server import git, git_server, skill_md
from tests.support.namespaces import manage
from vskill_core.errors import NotPermitted
from vskill_core.identity import Identity, normalise, submission_id
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import PUBLIC, Namespace, Quotas, Visibility
from vskill_platform.domain.review.own_review import why_reserved
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import EntryPoint
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.intake.submit import Request, submit, submit_repository
from vskill_platform.sources.contract import Survey
from vskill_platform.sources.router import SourceRouter
from vskill_platform.stages.repo_check import (
    REPO_CHECK,
    RepoCheckProgress,
    ask_for_check,
    ask_for_checks,
)
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.people.namespaces import NamespaceChange, change_namespace, read_directory
from vskill_platform.store.repo_health import Reach, RepoHealth
from vskill_platform.store.skills import follows
from vskill_platform.store.skills.follows import Follow, get_follow, grant_runs, put_follow, remove_follow
from vskill_platform.store.skills.quotas import HOUR_MS
from vskill_platform.submission_store import read_submission

pytestmark = pytest.mark.anyio

URL = "https://github.com/acme/skills"
REPO = normalise(URL)
DAY_MS = 24 * 3_600_000


@pytest.fixture
def server(tmp_path):
    with git_server(tmp_path / "served") as running:
        yield running


@pytest.fixture
async def env(tmp_path, server):
    async with open_test_env("memory", tmp_path, source_rewrites=(server.rewrite(),)) as opened:
        yield opened


def tree(**names: str) -> dict[str, bytes]:
    """Skills below `skills/`, each with a text of its own."""
    return {f"skills/{name}/SKILL.md": skill_md(name, text) for name, text in names.items()}


async def follow(env, repo=REPO, **chosen) -> Follow:
    await put_follow(Follow(identity=repo, by="user:olga", **chosen), "ours")
    return await checked(env, repo)


async def checked(env, repo=REPO) -> Follow:
    await ask_for_check(repo)
    await run_until_quiet(env)
    return await get_follow(repo)


async def run_of(path: str):
    found = await read_submission(submission_id(normalise(URL, path)))
    return None if found is None else found[0]


async def test_what_comes_is_submitted_what_changes_runs_again_and_what_goes_is_marked(env, server):
    """A monorepo of 40 skills; a push adds two, changes one and deletes one. The other 38 are left alone."""
    files = tree(**{f"s{number:02}": "First." for number in range(40)})
    repo = server.repo("acme/skills", files)
    first = await follow(env)
    assert first.state.found == f"40 new at {repo.head()[:12]}" and not first.state.problem
    before = {name: await run_of(name.removesuffix("/SKILL.md")) for name in files}
    assert {record.state for record in before.values()} == {State.PUBLISHED}
    del files["skills/s01/SKILL.md"]
    head = repo.commit({**files, **tree(s00="Changed.", new1="New.", new2="New.")})
    env.clock.advance(60_000)
    second = await checked(env)
    assert second.state.found == f"2 new, 1 changed, 1 gone at {head[:12]}"
    assert second.state.gone == {"skills/s01": second.state.checked_at}
    for name in ("new1", "new2", "s00"):
        record = await run_of(f"skills/{name}")
        assert (record.state, record.commit) == (State.PUBLISHED, head)
        assert record.history[0].actor == "follow:github.com/acme/skills" and record.submitter is None
    runs = {name: await run_of(name.removesuffix("/SKILL.md")) for name in before}
    again = {name for name, record in runs.items() if record.run > before[name].run}
    assert again == {"skills/s00/SKILL.md", "skills/s01/SKILL.md"}
    gone = runs["skills/s01/SKILL.md"]
    assert "There is no SKILL.md in 'skills/s01'" in gone.why and gone.published is not None
    server.requests.clear()
    third = await checked(env)
    assert third.state == msgspec.structs.replace(second.state, checked_at=env.kv.now())
    assert server.asked("/info/refs") == len(server.requests) - 1 == 1, "an unchanged head costs two requests"


async def test_a_folder_that_returns_is_new_again(env, server):
    repo = server.repo("acme/skills", tree(a="x", b="x"))
    await follow(env)
    repo.commit(tree(a="x"))
    assert list((await checked(env)).state.gone) == ["skills/b"]
    repo.commit(tree(a="x", b="x"))
    back = await checked(env)
    assert back.state.found.startswith("1 new at ") and back.state.gone == {}
    assert (await run_of("skills/b")).state is State.PUBLISHED


async def test_only_wanted_folders_are_taken_and_another_choice_looks_again(env, server):
    server.repo("acme/skills", {**tree(a="x"), "drafts/b/SKILL.md": skill_md("b")})
    found = await follow(env, folders="skills/*")
    assert list(found.state.taken) == ["skills/a"] and await run_of("drafts/b") is None
    found = await follow(env, folders="drafts/*")
    assert list(found.state.taken) == ["drafts/b"] and found.state.gone == {}


async def test_a_followed_branch_is_what_everybody_sees_of_the_repository(env, server):
    """Also who submits by hand, and what a run finds whose commit is gone."""
    repo = server.repo("acme/skills", tree(a="main"))
    git(repo.folder, "branch", "release")
    released = repo.head()
    repo.commit(tree(a="newer"))
    found = await follow(env, branch="release")
    assert found.state.commit == released and (await run_of("skills/a")).commit == released
    again = await submit_repository(URL, "skills/a")
    assert again.submission is not None and again.submission.commit == released
    git(repo.folder, "branch", "-D", "release")
    missing = await checked(env)
    assert missing.state.problem == "The repository has no branch 'release'."
    assert list(missing.state.gone) == ["skills/a"]


async def test_a_renamed_repository_is_not_taken_in_from_where_it_went(env, server):
    repo = server.repo("acme/skills", tree(a="x"))
    await follow(env)
    repo.folder.rename(repo.folder.parent / "renamed.git")
    moved = await checked(env)
    assert "no public repository" in moved.state.problem and moved.state.gone == {}


async def test_a_repository_that_says_where_it_moved_is_to_be_followed_there(tmp_path, server):
    host = f"127.0.0.1:{server.port}"
    server.repo("acme/new", tree(a="x"))
    server.faults["/acme/old"] = "/acme/new"
    async with open_test_env("memory", tmp_path, allowed_private_hosts=(f"http://{host}",)) as env:
        found = await follow(env, normalise(f"https://{host}/acme/old"))
        assert found.state.problem == f"The repository moved to https://{host}/acme/new. Follow it there."
        assert found.state.taken == {}


class SurveysElsewhere(SourceRouter):
    """A host that redirects the fetch of the files, and nothing before it."""

    async def survey(self, identity: Identity, commit: str | None = None) -> Survey:
        found = await super().survey(identity, commit)
        at = replace(found.identity, owner="victim", repo="theirs")
        places = (replace(one, identity=replace(at, path=one.identity.path)) for one in found.places)
        return replace(found, identity=at, places=tuple(places))


async def test_what_only_the_fetch_was_redirected_to_is_not_submitted(env, server):
    server.repo("acme/skills", tree(a="x"))
    sources = env.sources
    env = replace(env, sources=SurveysElsewhere(sources._uploads, sources._git))
    with active_env(env):
        found = await follow(env)
    assert "moved to https://github.com/victim/theirs" in found.state.problem and found.state.taken == {}
    elsewhere = normalise("https://github.com/victim/theirs", "skills/a")
    by = SubmittedBy(audiences=frozenset({PUBLIC}), follow=REPO.repo_key)
    with pytest.raises(NotPermitted, match="does not submit"):
        await submit(Request(elsewhere, EntryPoint.CRAWLER, by))


async def test_an_emptied_repository_loses_no_skill_here(env, server):
    repo = server.repo("acme/skills", tree(a="x"))
    await follow(env)
    repo.commit({"README.md": b"moved away"})
    emptied = await checked(env)
    assert list(emptied.state.gone) == ["skills/a"] and "There is no SKILL.md" in emptied.state.problem
    git(repo.folder, "update-ref", "-d", "refs/heads/main")
    emptied = await checked(env)
    assert "it has no commit" in emptied.state.problem and list(emptied.state.gone) == ["skills/a"]
    assert (await run_of("skills/a")).published is not None
    repo.commit(tree(a="x"))
    back = await checked(env)
    assert back.state.problem == "" and list(back.state.taken) == ["skills/a"]


async def test_a_history_rewritten_by_force_is_taken_by_what_it_holds_now(env, server):
    repo = server.repo("acme/skills", tree(a="x", b="x"))
    await follow(env)
    before = await run_of("skills/b")
    head = repo.commit(tree(a="rewritten", b="x"))
    orphan = git(repo.folder, "commit-tree", f"{head}^{{tree}}", "-m", "one root")
    git(repo.folder, "update-ref", "refs/heads/main", orphan)
    found = await checked(env)
    assert found.state.found == f"1 changed at {orphan[:12]}"
    assert (await run_of("skills/a")).commit == orphan and (await run_of("skills/b")).run == before.run


async def test_an_archived_repository_is_read_as_before(env, server):
    """A host serves it and takes no pushes; plain git does not tell, so nothing changes."""
    repo = server.repo("acme/skills", tree(a="x"))
    await follow(env)
    repo.config("http.receivepack", "false")
    found = await checked(env)
    assert found.state.problem == "" and list(found.state.taken) == ["skills/a"]


async def test_what_was_taken_down_or_is_over_a_quota_is_said_and_tried_again(env, server):
    repo = server.repo("acme/skills", tree(a="x"))
    await follow(env)
    await take_down("acme/skills/a", by="admin:rita", reason="bad")
    repo.commit(tree(a="newer", b="x"))
    await set_quota(Quotas(submissions_per_hour=0))
    found = await checked(env)
    reasons = {one.path: one.reason for one in found.state.untaken}
    assert "restore" in reasons["skills/a"] and "quota" in reasons["skills/b"], reasons
    await set_quota(Quotas())
    found = await checked(env)
    assert [one.path for one in found.state.untaken] == ["skills/a"]
    assert (await run_of("skills/b")).state is State.PUBLISHED


async def set_quota(quotas: Quotas) -> None:
    async def decide(known: Namespace) -> NamespaceChange:
        return NamespaceChange(msgspec.structs.replace(known, quotas=quotas))

    await change_namespace("acme", decide, AuditNote("quotas set", "acme", "system", "a test"))


async def test_what_exceeds_the_runs_of_an_hour_waits_for_the_next(env, server):
    repo = server.repo("acme/skills", tree(**{f"s{number:03}": "x" for number in range(5)}))
    # Other repositories of the namespace used up the rest.
    await grant_runs("acme", follows.RUNS_PER_HOUR - 2)
    found = await follow(env)
    assert (len(found.state.taken), len(found.state.untaken)) == (2, 3)
    assert found.state.untaken[0].reason.endswith("waits for the next.")
    assert (await ask_for_checks(RepoCheckProgress())).outstanding == ()
    env.clock.advance(HOUR_MS)
    assert (await ask_for_checks(RepoCheckProgress())).outstanding == (REPO.repo_key,)
    await run_until_quiet(env)
    found = await get_follow(REPO)
    assert (found.state.found, found.state.untaken) == (f"3 new at {repo.head()[:12]}", ())


async def test_following_anew_gives_no_more_runs(env, server):
    server.repo("acme/skills", tree(a="x", b="x"))
    await grant_runs("acme", follows.RUNS_PER_HOUR - 1)
    assert list((await follow(env)).state.taken) == ["skills/a"]
    await remove_follow(REPO, by="user:olga", reason="a test")
    assert (await follow(env)).state.taken == {}


@pytest.mark.slow
async def test_a_repository_with_more_skills_than_may_be_followed_says_which_are_left_out(env, server):
    many = {f"{number:03}/SKILL.md": skill_md(f"n{number}") for number in range(follows.MOST_FOLDERS + 1)}
    server.repo("acme/skills", many)
    found = await follow(env)
    one = found.state.untaken[0]
    assert one.path == f"{follows.MOST_FOLDERS:03}" and str(follows.MOST_FOLDERS) in one.reason


async def test_it_submits_as_its_hidden_namespace_and_nobody_reviews_it_as_their_own(env, server):
    server.repo("acme/skills", tree(a="x"))
    await manage(env, "acme", Visibility.TEAM)
    await follow(env)
    record = await run_of("skills/a")
    assert record.audience == "ns:acme" and record.submitters == ()
    waiting = msgspec.structs.replace(
        record, state=State.NEEDS_REVIEW, submitter="ann", submitter_unknown=True
    )
    assert why_reserved(waiting, await read_directory()) is not None
    assert why_reserved(record, await read_directory()) is not None


async def test_a_thousand_followed_repositories_are_spread_over_the_day(env):
    """Each is asked for once a day, at a moment of its own."""
    count = 1000
    for number in range(count):
        place = normalise(f"https://github.com/acme/r{number:04}")
        made = Follow(identity=place, by="user:olga")
        await env.kv.put(made.key, msgspec.json.encode(made))
        health = RepoHealth(place.repo_key, place.url, Reach.REACHABLE, env.kv.now(), env.kv.now())
        await env.kv.put(keys.repohealth(place.repo_key), msgspec.json.encode(health))
    hours: list[int] = []
    for _ in range(24):
        env.clock.advance(DAY_MS // 24)
        hours.append(await checks_due(env))
    assert sum(hours) == count and max(hours) < 3 * count / 24, hours


async def checks_due(env) -> int:
    """Ask until nothing is due, and end each check as one that found nothing new."""
    progress, count = RepoCheckProgress(), 0
    while True:
        progress = await ask_for_checks(progress)
        for repo in progress.outstanding:
            place = normalise(f"https://{repo}")
            health = RepoHealth(repo, place.url, Reach.REACHABLE, env.kv.now(), env.kv.now())
            await env.kv.put(keys.repohealth(repo), msgspec.json.encode(health))
            await env.kv.delete(f"task:{REPO_CHECK}:{repo}")
        count += len(progress.outstanding)
        if not progress.outstanding and progress.after is None and progress.follows_after is None:
            return count


async def test_a_plugin_is_taken_in_whole_and_a_skill_in_it_only_where_it_was_before(env, server):
    """What was taken in on its own goes on, when the folder around it becomes a plugin."""
    files = {"kit/skills/old/SKILL.md": skill_md("old")}
    repo = server.repo("acme/skills", files)
    await follow(env)
    manifest = b'{"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": "kit"}'
    changed = {
        "kit/skills/old/SKILL.md": skill_md("old", "Changed."),
        "kit/skills/new/SKILL.md": skill_md("new"),
    }
    head = repo.commit({**changed, "kit/plugin.json": manifest})
    env.clock.advance(60_000)
    assert (await checked(env)).state.found == f"1 new, 1 changed at {head[:12]}"
    assert await run_of("kit/skills/new") is None
    for path in ("kit", "kit/skills/old"):
        record = await run_of(path)
        assert record is not None and (record.state, record.commit) == (State.PUBLISHED, head)
