"""Publishing from CI without a stored secret: which jobs are let in, by which sentence the others are refused, and what the
token of one can do. The issuers are servers on loopback that sign what a test tells them to, and the repositories are
fetched from a git server."""

import asyncio
from typing import Any

import msgspec
import pytest
from joserfc.jwk import ECKey

from tests.docs.test_policies import FROM_CI, POLICIES
from tests.support.ci_jobs import URL, WHY, WORKFLOW, ci_world, let_in_job
from tests.support.envs import active_env, open_test_env, run_until_quiet
from tests.support.git_server import skill_md
from tests.support.manual_clock import ManualClock
from tests.support.namespaces import manage, set_mode
from tests.support.owners import set_owners
from tests.support.people import browser, make_account, signed_in, token_of
from tests.support.system_reads import get_submission
from vskill_core.errors import InvalidSettings
from vskill_core.identity import normalise
from vskill_core.publisher import Publisher
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.submissions.submission_lists import page_for
from vskill_platform.domain.people.namespace import NamespaceRole, RegistryMode, Visibility
from vskill_platform.domain.people.token import SCOPES_OF
from vskill_platform.domain.submissions.submission import EntryPoint
from vskill_platform.setting_issuers import CI_ISSUERS
from vskill_platform.settings import load_settings
from vskill_platform.sign_in.ci import LONGEST_S
from vskill_platform.sign_in.oidc import SKEW_S
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.people.owners import Owner
from vskill_platform.store.people.publishers import LIFE_MS, PENDING_MS
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.store.submissions.submission_lists import HandedIn
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio


@pytest.fixture
async def world(tmp_path):
    async with ci_world(tmp_path) as opened:
        yield opened


async def settled(world, answer):
    """The submission's record when nothing is left to do."""
    with active_env(world.env):
        await run_until_quiet(world.env)
        return await get_submission(answer.json()["id"])


async def test_the_right_job_publishes_its_commit_without_a_stored_secret(world):
    """The commit of the token is what is published, not the branch's newest; the attestation says who did."""
    assert (await world.add(ref="refs/heads/main")).status_code == 201
    meant = world.repo.head()
    job = await world.job()
    newer = world.repo.commit(
        {"lint/SKILL.md": skill_md("lint", "Newer."), "format/SKILL.md": skill_md("format")}
    )
    answer = await world.submit(job)
    assert answer.status_code == 201, answer.text
    record = await settled(world, answer)
    assert record.published is not None, record.history
    assert record.commit == meant != newer
    expected = Publisher(
        issuer=world.github.address,
        repository="github.com/acme/skills",
        workflow=WORKFLOW,
        ref="refs/heads/main",
        commit=meant,
        run="https://github.com/acme/skills/actions/runs/99",
    )
    assert record.publisher == expected and record.submitter is None
    assert record.history[0].actor == "ci:github.com/acme/skills"
    shown = (await world.client.get(f"/api/v1/submissions/{record.id}", headers=job)).json()
    assert shown["publisher"]["workflow"] == WORKFLOW and shown["history"][0]["actor"] == expected.actor
    with active_env(world.env):
        skill = await get_skill(record.published.removeprefix("skill:"))
        audit = await list_audit()
    assert skill.versions[-1].publisher == expected
    actors = {one.action: one.by for one in audit.items}
    assert (
        actors["publisher let in"] == actors["submit"] == expected.actor
        and actors["publisher added"] == "user:olga"
    )
    listed = await world.client.get("/api/v1/publishers", params={"repoUrl": URL}, headers=world.maintainer)
    (one,) = listed.json()["publishers"]
    assert (one["number"], one["lastRun"]) == ("4711", expected.run) and one["lastUsedAt"] is not None


async def test_every_skill_of_the_commit_is_submitted_where_no_folder_is_named(world):
    await world.add()
    job = await world.job()
    done = (await world.submit(job, skillPath=None, every=True)).json()
    assert sorted(one["skillPath"] for one in done["results"]) == ["format", "lint"]
    findings = await world.client.get(f"/api/v1/submissions/{done['results'][0]['id']}/findings", headers=job)
    assert findings.status_code == 200


async def test_gitlab_says_it_in_other_claims(world):
    repo = world.git.repo("group/sub/skills", {"lint/SKILL.md": skill_md("lint")})
    url = "https://gitlab.com/group/sub/skills"
    await set_owners(world.env, normalise(url), Owner("olga", 1, "file"))
    added = await world.add(repoUrl=url, issuer="gitlab", workflow=".gitlab-ci.yml")
    assert added.status_code == 201, added.text
    claims = world.claims_at_gitlab(repo)
    foreign = await world.exchange(world.gitlab.sign({**claims, "pipeline_source": "merge_request_event"}))
    assert "the event merge_request_event runs what others propose" in foreign.json()["detail"]
    # A child pipeline's parent may be that of a merge request, and its file any, also one that a job wrote.
    for lie in (
        {"pipeline_source": "parent_pipeline"},
        {"job_source": "parent_pipeline"},
        {"job_source": "pipeline_execution_policy"},
        {"pipeline_source": "security_orchestration_policy", "ci_config_ref_uri": None},
    ):
        answer = await world.exchange(world.gitlab.sign({**claims, **lie}))
        said_why = (
            f"a job of {next(iter(lie.values()))} runs another file than the one that its token names, "
        )
        assert answer.status_code == 403 and said_why in answer.json()["detail"], answer.text
        assert ".gitlab-ci.yml@refs/heads/main" in answer.json()["detail"] or None in lie.values()
    claims["job_source"] = "push"
    elsewhere = {**claims, "ci_config_ref_uri": "gitlab.com/evil/ci//.gitlab-ci.yml@refs/heads/main"}
    assert (
        "is not in group/sub/skills" in (await world.exchange(world.gitlab.sign(elsewhere))).json()["detail"]
    )
    let_in = await world.exchange(world.gitlab.sign(claims))
    assert let_in.status_code == 200, let_in.text
    job = {"authorization": f"Bearer {let_in.json()['token']}"}
    record = await settled(world, await world.submit(job, repoUrl=url))
    assert record.published is not None
    assert record.publisher.fits("gitlab.com/group/sub/skills/.gitlab-ci.yml")
    assert record.publisher.run == "https://gitlab.com/group/sub/skills/-/jobs/5"


def at(seconds):
    return ManualClock().now() // 1000 + seconds


#: The branch that GitHub makes of a proposal before it merges it.
QUEUE = f"refs/heads/gh-readonly-queue/main/pr-7-{'a' * 40}"
#: What is wrong with a token, and the sentence that says so.
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "wrong repository": ({"repository": "acme/other", "workflow_ref": "acme/other/x.yml@r", "job_workflow_ref": "acme/other/x.yml@r"}, "no publisher for https://github.com/acme/other"),
    "recycled name": ({"repository_id": "666"}, "no publisher for https://github.com/acme/skills, number 666"),
    "wrong workflow": ({"workflow_ref": "acme/skills/.github/workflows/ci.yml@r", "job_workflow_ref": "acme/skills/.github/workflows/ci.yml@r"}, "allows the workflow .github/workflows/ci.yml"),
    "wrong branch": ({"ref": "refs/heads/feature"}, "allows refs/heads/feature"),
    "wrong environment": ({"environment": "test"}, "allows the environment 'test'"),
    "no environment": ({"environment": None}, "allows the environment ''"),
    "wrong audience": ({"aud": "https://other.example"}, "its audience is https://other.example"),
    "two audiences": ({"aud": ["https://other.example", "http://platform.test"]}, "its audience is"),
    "wrong issuer": ({"iss": "https://evil.example"}, "knows no CI issuer 'https://evil.example'"),
    "expired": ({"exp": at(-SKEW_S)}, "it has expired"),
    "in the future": ({"iat": at(SKEW_S + 1)}, "it is not valid yet"),
    "not yet": ({"nbf": at(SKEW_S + 1)}, "it is not valid yet"),
    "for ever": ({"exp": at(LONGEST_S + 1)}, "valid for more than a day"),
    "fork's pull request": ({"event_name": "pull_request", "ref": "refs/pull/7/merge"}, "the event pull_request runs what others propose"),
    "pull request target": ({"event_name": "pull_request_target"}, "the event pull_request_target runs"),
    "merge queue": ({"event_name": "merge_group", "ref": QUEUE}, "the event merge_group runs what others propose"),
    "merge queue's push": ({"ref": QUEUE}, f"{QUEUE} holds what others propose"),
    "no branch": ({"ref": "refs/pull/7/merge"}, "refs/pull/7/merge is neither a branch nor a tag"),
    "somebody else's reusable workflow": ({"job_workflow_ref": "evil/ci/.github/workflows/publish.yml@refs/heads/main"}, "evil/ci/.github/workflows/publish.yml@refs/heads/main is not in acme/skills"),
    "own reusable workflow": ({"job_workflow_ref": "acme/skills/.github/workflows/inner.yml@refs/heads/main"}, "the job is in a reusable workflow"),
    "no number": ({"repository_id": None}, "it has no claim 'repository_id'"),
    "no workflow": ({"job_workflow_ref": None}, "it has no claim 'job_workflow_ref'"),
    "no id": ({"jti": None}, "its claims are not those of an ID token"),
    "no end": ({"exp": None}, "its claims are not those of an ID token"),
    "no commit": ({"sha": "main"}, "'main' is no commit"),
    "strange repository": ({"repository": "acme/..", "workflow_ref": "acme/../x.yml@r", "job_workflow_ref": "acme/../x.yml@r"}, "is no repository"),
    "no text": ({"repository": {"a": 1}}, "it has no claim 'repository'"),
}  # fmt: skip


@pytest.mark.parametrize("lie", REFUSED)
async def test_every_other_job_is_refused_by_the_sentence_that_says_why(world, lie):
    await world.add(ref="refs/heads/main", environment="release", number="4711")
    claims, sentence = REFUSED[lie]
    answer = await world.exchange(world.token(**{"environment": "release", **claims}))
    assert answer.status_code == 403 and sentence in answer.json()["detail"], answer.text
    assert (await world.exchange(world.token(environment="release"))).status_code == 200


@pytest.mark.parametrize("signs", ["unknown key", "none", "secret", "no token", "cut", "long"])
async def test_what_the_issuer_did_not_sign_is_refused(world, signs):
    await world.add()
    claims = world.claims()
    token = {
        "unknown key": lambda: world.github.sign_with(ECKey.generate_key("P-256"))(claims),
        "none": lambda: world.github.sign_not(claims),
        "secret": lambda: world.github.sign_by_secret(claims),
        "no token": lambda: "not.a.token",
        "cut": lambda: world.token()[:-4],
        "long": lambda: "a" * 10_001,
    }[signs]()
    answer = await world.exchange(token)
    sentences = {
        "no token": "no signed JSON Web Token",
        "long": "too long",
    }
    assert answer.status_code == (400 if signs == "long" else 403)
    assert sentences.get(signs, "its signature is not one of") in answer.json()["detail"], answer.text


async def test_a_token_serves_once(world):
    await world.add()
    token = world.token()
    assert (await world.exchange(token)).status_code == 200
    again = await world.exchange(token)
    assert again.status_code == 403 and "it was used before" in again.json()["detail"]
    world.env.clock.advance(300_000 + SKEW_S * 1000)
    assert "it has expired" in (await world.exchange(token)).json()["detail"]


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
async def test_a_token_serves_once_also_where_two_processes_get_it_at_once(tmp_path, engine):
    """Each has a store, an application and keys of its own, as processes have."""
    async with ci_world(tmp_path, engine) as world:
        await world.add()
        settings = world.env.settings
        async with (
            open_test_env(engine, tmp_path, clock=world.env.clock, active=False, settings=settings) as other,
            browser(create_app(other)) as beside,
        ):
            for _ in range(5):
                sent = {"idToken": world.token()}
                asked = [
                    one.post("/api/v1/publishers/exchange", json=sent) for one in (world.client, beside) * 3
                ]
                answers = await asyncio.gather(*asked)
                assert sorted(one.status_code for one in answers) == [200] + [403] * 5
                refused = [one.json()["detail"] for one in answers if one.status_code == 403]
                assert all("it was used before" in one for one in refused), refused
        with active_env(world.env):
            noted = [one for one in (await list_audit()).items if one.action == "publisher let in"]
        assert len(noted) == 5


async def test_the_first_job_says_the_repositorys_number_within_a_month(world):
    await world.add()
    world.env.clock.advance(PENDING_MS)
    late = await world.exchange(world.token())
    assert "no publisher for" in late.json()["detail"], "the name may be somebody else's by now"
    await world.add()
    assert (await world.exchange(world.token())).status_code == 200
    assert "number 666" in (await world.exchange(world.token(repository_id="666"))).json()["detail"]


async def test_whoever_may_not_read_the_repository_learns_nothing_of_its_publishers(world):
    """Somebody who took over the name of a repository whose namespace is hidden: each wrong guess reads the same."""
    await world.add(ref="refs/heads/main")
    guesses = (
        {"ref": "refs/heads/x"},
        {"workflow_ref": "acme/skills/x.yml@r", "job_workflow_ref": "acme/skills/x.yml@r"},
    )
    told = [(await world.exchange(world.token(**one))).json()["detail"] for one in guesses]
    assert len(set(told)) == 2
    with active_env(world.env):
        await manage(world.env, "acme", Visibility.TEAM, "user:olga", role=NamespaceRole.OWNER)
    hidden = [(await world.exchange(world.token(**one))).json()["detail"] for one in guesses]
    none = (await world.exchange(world.token(repository_id="666", ref="refs/heads/x"))).json()["detail"]
    assert set(hidden) == {none.replace("666", "4711")}
    await world.job()  # the right one says the number
    known = [(await world.exchange(world.token(**one))).json()["detail"] for one in guesses]
    assert known == told, "the repository itself is told which check failed"


async def test_the_token_does_nothing_else(world):
    """It ends by itself, and until then it submits and reads its own repository only."""
    await world.add()
    job = await world.job()
    other = world.git.repo("acme/other", {"lint/SKILL.md": skill_md("lint")})
    assert other.head()
    refused = await world.submit(job, repoUrl="https://github.com/acme/other")
    assert (
        refused.status_code == 403
        and "only submits https://github.com/acme/skills" in refused.json()["detail"]
    )
    theirs = (await world.submit({}, repoUrl="https://github.com/acme/other")).json()
    mine = (await world.submit(job)).json()
    for path, status in {
        f"/api/v1/submissions/{mine['id']}": 200,
        f"/api/v1/submissions/{mine['id']}/findings": 200,
        f"/api/v1/submissions/{theirs['id']}": 403,
        f"/api/v1/submissions/{theirs['id']}/findings": 403,
        f"/submissions/{theirs['id']}": 403,
        "/api/v1/skills": 403,
        "/api/v1/account": 403,
        "/skills": 403,
        "/": 403,
        "/api/v1/tokens": 403,
        f"/api/v1/publishers?repoUrl={URL}": 403,
    }.items():
        answer = await world.client.get(path, headers=job)
        assert answer.status_code == status, (path, answer.text[:300])
    sent = {"reason": WHY}
    cancel = await world.client.post(f"/api/v1/submissions/{mine['id']}/cancel", json=sent, headers=job)
    assert cancel.status_code == 403
    world.env.clock.advance(LIFE_MS)
    assert (await world.submit(job)).status_code == 401


async def test_a_hidden_namespace_is_published_to_and_stays_hidden(world):
    """In a registry that lets in accounts only, too."""
    with active_env(world.env):
        await manage(world.env, "acme", Visibility.TEAM, "user:olga", role=NamespaceRole.OWNER)
        await set_mode(world.env, RegistryMode.INTERNAL)
    await world.add()
    job = await world.job()
    answer = await world.submit(job)
    assert answer.status_code == 201, answer.text
    record = await settled(world, answer)
    assert record.published is not None and record.audience.startswith("ns:acme")
    assert (await world.client.get(f"/api/v1/submissions/{record.id}", headers=job)).json()[
        "state"
    ] == "PUBLISHED"
    assert (await world.client.get(f"/api/v1/submissions/{record.id}")).status_code == 401


@pytest.mark.parametrize(
    ("visibility", "told"), [(Visibility.TEAM, (404, 200, 200)), (Visibility.PUBLIC, (200, 200, 200))]
)
async def test_what_was_refused_of_a_hidden_repository_is_for_its_readers(world, visibility, told):
    app = create_app(world.env)
    with active_env(world.env):
        await manage(world.env, "acme", visibility, "user:olga", role=NamespaceRole.OWNER)
        _, job, _ = await let_in_job(URL)
        refused = HandedIn("refused", repo_url=URL, skill_path="lint", reason="No SKILL.md; add one.")
        page = await page_for(Principal(ci=job), [refused, refused], EntryPoint.API)
        stranger = await world.client.get(f"/api/v1{page}")
        member = await world.client.get(f"/api/v1{page}", headers=world.maintainer)
        async with signed_in(app, world.env, "eve", Role.REVIEWER) as eve:
            reviewer = await eve.client.get(f"/api/v1{page}")
    assert (stranger.status_code, member.status_code, reviewer.status_code) == told
    assert ("No SKILL.md" in stranger.text) is (told[0] == 200) and "No SKILL.md" in member.text


async def test_nobody_takes_the_run_of_a_job_away(world):
    """A stranger who submits the place while the job's run waits gets the next run; the same bytes keep their
    publisher."""
    await world.add()
    meant = world.repo.head()
    answer = await world.submit(await world.job())
    world.repo.commit({"lint/SKILL.md": skill_md("lint"), "README.md": b"newer\n"})
    assert (await world.submit({})).json()["duplicate"]
    with active_env(world.env):
        waiting = await get_submission(answer.json()["id"])
        assert waiting.publisher is not None and waiting.rerun_requested is not None
        assert waiting.commit == waiting.publisher.commit == meant
    record = await settled(world, answer)
    assert (record.run, record.publisher) == (2, None) and record.published is not None
    with active_env(world.env):
        skill = await get_skill(record.published.removeprefix("skill:"))
    (version,) = skill.versions
    assert version.publisher is not None and version.publisher.commit == meant


async def test_a_job_vouches_for_what_somebody_else_has_published(world):
    await world.add()
    before = await settled(world, await world.submit({}))
    assert before.publisher is None and before.published is not None
    answer = await world.submit(await world.job())
    assert answer.json()["requeued"], answer.text
    after = await settled(world, answer)
    assert after.run == 2 and after.publisher is not None
    with active_env(world.env):
        skill = await get_skill(after.published.removeprefix("skill:"))
    assert len(skill.versions) == 1 and skill.versions[0].publisher == after.publisher
    assert (await world.submit(await world.job())).json()["alreadyVerified"]


async def test_a_commit_that_is_gone_is_not_replaced_by_the_newest(world):
    await world.add()
    answer = await world.submit(await world.job(sha="0" * 40))
    assert answer.status_code in (404, 410, 422, 502), answer.text
    assert f"does not have the commit {'0' * 40}" in answer.text


async def test_only_maintainers_see_and_change_publishers(world):
    with active_env(world.env):
        await make_account(world.env, "bob", Role.AUTHOR)
        bob = {"authorization": f"Bearer {await token_of(world.env, 'bob', *SCOPES_OF[Role.AUTHOR])}"}
    added = (await world.add()).json()["publishers"]
    theirs = await world.client.get("/api/v1/publishers", params={"repoUrl": URL}, headers=bob)
    assert theirs.status_code == 403 and "Only a maintainer" in theirs.json()["detail"]
    wrong = await world.add(issuer="gitlab")
    assert (
        wrong.status_code == 400 and "does not sign for repositories of github.com" in wrong.json()["detail"]
    )
    for field, value in {"workflow": "../x.yml", "ref": "main", "number": "x"}.items():
        refused = await world.add(**{field: value})
        assert refused.status_code == 400 and field in refused.json()["detail"], refused.text
    gone = f"/api/v1/publishers/{added[0]['id']}/remove"
    sent = {"repoUrl": URL, "reason": WHY}
    assert (await world.client.post(gone, json=sent, headers=bob)).status_code == 403
    assert (await world.client.post(gone, json=sent, headers=world.maintainer)).json()["publishers"] == []
    assert "no publisher for" in (await world.exchange(world.token())).json()["detail"]
    assert (await world.client.post(gone, json=sent, headers=world.maintainer)).status_code == 404


async def test_the_page_adds_and_removes_them(world):
    async with signed_in(create_app(world.env), world.env, "rob", Role.AUTHOR) as stranger:
        assert (await stranger.get(f"/publishers?repoUrl={URL}")).status_code == 403
    await set_owners(world.env, normalise(URL), Owner("pia", 1, "file"))
    async with signed_in(create_app(world.env), world.env, "pia", Role.AUTHOR) as pia:
        assert "Show its publishers" in (await pia.get("/publishers")).text
        page = (await pia.get(f"/publishers?repoUrl={URL}")).text
        assert "No workflow may publish this repository yet" in page
        back = {"back": f"/publishers?repoUrl={URL}", "repo_url": URL, "reason": WHY}
        told = await pia.do("/publishers/add", issuer="github", workflow="publish.yml", **back)
        assert told == "The publisher is added."
        page = (await pia.get(f"/publishers?repoUrl={URL}")).text
        assert WORKFLOW in page and "set by the first run" in page
        number = page.partition('name="publisher_id" value="')[2].partition('"')[0]
        assert await pia.do("/publishers/remove", publisher_id=number, **back) == "The publisher is removed."


async def test_the_skills_page_says_who_published_it(world):
    await world.add()
    record = await settled(world, await world.submit(await world.job()))
    page = (await world.client.get(f"/skills/{record.published.removeprefix('skill:')}")).text
    assert "Published by" in page and WORKFLOW in page and record.commit[:12] in page
    page = (await world.client.get(f"/submissions/{record.id}")).text
    assert "Published from CI" in page and WORKFLOW in page


async def test_the_how_tos_policy_lets_only_ci_publish_and_at_once(tmp_path):
    file = tmp_path / "policy.yaml"
    file.write_text(POLICIES[FROM_CI])
    async with ci_world(tmp_path, policy=str(file)) as world:
        await world.add()
        by_hand = await settled(world, await world.submit({}))
        assert by_hand.published is None and "and not by hand" in by_hand.decision.reason
        from_main = await settled(world, await world.submit(await world.job()))
        assert from_main.published is None and "on a tag v*" in from_main.decision.reason
        job = await world.job(ref="refs/tags/v1.0.0", sub="repo:acme/skills:ref:refs/tags/v1.0.0")
        assert (await settled(world, await world.submit(job))).published is not None


@pytest.mark.parametrize(
    ("forges", "names"),
    [(None, ["github", "gitlab"]), ("gitlab", ["gitlab"]), ("", []), ("gitlab,github", ["github", "gitlab"])],
)
def test_the_operator_says_whose_jobs_may_be_let_in(tmp_path, forges, names):
    file = tmp_path / "sign-in.toml"
    file.write_text('[ci.forge]\nissuer = "https://git.example"\nhost = "git.example"\nlike = "gitlab"\n')
    told = {} if forges is None else {"VSKILL_CI_FORGES": forges}
    assert [one.name for one in load_settings(told).ci_issuers] == names
    told |= {"VSKILL_SIGN_IN_FILE": str(file), "VSKILL_PUBLIC_URL": "https://here.example"}
    found = load_settings(told).ci_issuers
    assert [one.name for one in found] == [*names, "forge"]
    assert found[-1].claims == CI_ISSUERS[1].claims, "as `like` says"


def test_a_forge_that_is_left_out_is_no_name_for_another_issuer(tmp_path):
    """Publishers that were added for its jobs would let in those of the other one."""
    file = tmp_path / "sign-in.toml"
    file.write_text('[ci.github]\nissuer = "https://git.example"\nhost = "git.example"\nlike = "gitlab"\n')
    told = {"VSKILL_SIGN_IN_FILE": str(file), "VSKILL_PUBLIC_URL": "https://here.example"}
    with pytest.raises(InvalidSettings, match="github and gitlab are known already"):
        load_settings({**told, "VSKILL_CI_FORGES": ""})
    with pytest.raises(InvalidSettings, match="VSKILL_CI_FORGES"):
        load_settings({"VSKILL_CI_FORGES": "bitbucket"})


async def test_without_its_forge_a_job_is_refused_and_no_publisher_is_added(world):
    await world.add()
    env = msgspec.structs.replace(
        world.env, settings=msgspec.structs.replace(world.env.settings, ci_issuers=())
    )
    async with browser(create_app(env)) as client:
        refused = await client.post("/api/v1/publishers/exchange", json={"idToken": world.token()})
        assert refused.status_code == 403 and "this registry knows no CI issuer" in refused.json()["detail"]
        sent = {"repoUrl": URL, "issuer": "github", "workflow": "other.yml", "reason": WHY}
        added = await client.post("/api/v1/publishers", json=sent, headers=world.maintainer)
        assert added.status_code == 400, added.text


def test_a_publisher_is_named_by_its_repository_and_its_workflow():
    one = Publisher(repository="github.com/Acme/skills", workflow=WORKFLOW)
    named = (
        "acme/skills",
        "github.com/acme/skills",
        "https://github.com/Acme/skills/",
        "acme/skills/publish.yml",
    )
    assert all(one.fits(name) for name in (*named, f"github.com/acme/skills/{WORKFLOW}"))
    others = (
        "acme",
        "skills",
        "acme/skill",
        "gitlab.com/acme/skills",
        "acme/skills/ci.yml",
        "acme/skills/PUBLISH.yml",
    )
    assert not any(one.fits(name) for name in (*others, "", "/", "publish.yml"))
