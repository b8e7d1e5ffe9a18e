"""CI jobs of a forge whose issuer is a real server on loopback, and a git server that stands in for the forge's host."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from tests.support.envs import active_env, open_test_env
from tests.support.git_server import GitServer, Repo, git_server, skill_md
from tests.support.issuer import OwnIssuer, own_issuer
from tests.support.manual_clock import ManualClock
from tests.support.owners import set_owners
from tests.support.people import ADDRESS, browser, make_account, token_of
from vskill_core.identity import normalise
from vskill_core.publisher import Publisher
from vskill_platform.domain.people.token import SCOPES_OF, CiJob
from vskill_platform.setting_issuers import CI_ISSUERS, CiIssuer
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.people.owners import Owner
from vskill_platform.store.people.publishers import (
    ProvedJob,
    TrustedWorkflow,
    change_workflows,
    let_in,
    replace_workflow,
)
from vskill_platform.web.app import create_app
from vskill_platform.worker_context import Env, require_env

URL = "https://github.com/acme/skills"
WORKFLOW = ".github/workflows/publish.yml"
WHY = "a test"
Claims = dict[str, Any]


class CiWorld(msgspec.Struct, frozen=True):
    """A registry, a forge, a repository with two skills, and its maintainer `olga`."""

    env: Env
    github: OwnIssuer
    gitlab: OwnIssuer
    git: GitServer
    repo: Repo
    client: httpx2.AsyncClient
    maintainer: dict[str, str]

    def claims(self, **lies: Any) -> Claims:
        """What GitHub says about the job of `publish.yml` on `main`, but for some lies; None leaves one out."""
        now = self.env.kv.now() // 1000
        workflow = f"acme/skills/{WORKFLOW}@refs/heads/main"
        said = {
            "iss": self.github.address,
            "aud": ADDRESS,
            "iat": now,
            "exp": now + 300,
            "jti": self.env.clock.new_id(),
            "sub": "repo:acme/skills:ref:refs/heads/main",
            "repository": "acme/skills",
            "repository_id": "4711",
            "repository_owner_id": "17",
            "workflow_ref": workflow,
            "job_workflow_ref": workflow,
            "ref": "refs/heads/main",
            "sha": self.repo.head(),
            "event_name": "push",
            "run_id": "99",
            **lies,
        }
        return {name: value for name, value in said.items() if value is not None}

    def claims_at_gitlab(self, repo: Repo, **lies: Any) -> Claims:
        """What GitLab says about the job of `.gitlab-ci.yml` on `main` of `group/sub/skills`."""
        said = self.claims()
        return {
            **{name: said[name] for name in ("aud", "iat", "exp", "jti")},
            "iss": self.gitlab.address,
            "project_path": "group/sub/skills",
            "project_id": "12",
            "ci_config_ref_uri": "gitlab.com/group/sub/skills//.gitlab-ci.yml@refs/heads/main",
            "ref_path": "refs/heads/main",
            "sha": repo.head(),
            "pipeline_source": "push",
            "job_id": "5",
            **lies,
        }

    def token(self, **lies: Any) -> str:
        return self.github.sign(self.claims(**lies))

    async def add(self, **fields: str) -> httpx2.Response:
        """Let a workflow in, as the maintainer."""
        sent = {"repoUrl": URL, "issuer": "github", "workflow": "publish.yml", "reason": WHY, **fields}
        return await self.client.post("/api/v1/publishers", json=sent, headers=self.maintainer)

    async def exchange(self, token: str) -> httpx2.Response:
        return await self.client.post("/api/v1/publishers/exchange", json={"idToken": token})

    async def job(self, **lies: Any) -> dict[str, str]:
        """The headers of a job that was let in."""
        answer = await self.exchange(self.token(**lies))
        assert answer.status_code == 200, answer.text
        return {"authorization": f"Bearer {answer.json()['token']}"}

    async def submit(self, headers: dict[str, str], **fields: Any) -> httpx2.Response:
        sent = {"repoUrl": URL, "skillPath": "lint", **fields}
        return await self.client.post("/api/v1/submissions", json=sent, headers=headers)


async def let_in_job(url: str) -> tuple[str, CiJob, str]:
    """A job of a repository that a publisher was added for: its token, itself, and the publisher's id."""
    repository, now = normalise(url), require_env("kv").kv.now()
    one = TrustedWorkflow(
        id=f"publisher-{now}", issuer="github", workflow=WORKFLOW, by="system", created_at=now
    )
    note = AuditNote("publisher added", url, "system", WHY)
    await change_workflows(repository, lambda known: replace_workflow(known, one.id, one), note)
    publisher = Publisher(repository=url.removeprefix("https://"), workflow=WORKFLOW, commit="c" * 40)
    proved = ProvedJob(publisher, repository, "github", "4711", f"proof of {url}", 60_000)
    secret, job = await let_in(proved, is_open=True)
    return secret, job, one.id


def ci_issuer(known: CiIssuer, address: str) -> CiIssuer:
    """One that every registry knows, at another address."""
    return msgspec.structs.replace(known, issuer=address)


@contextmanager
def forge(root: Path) -> Iterator[tuple[GitServer, Repo]]:
    with git_server(root) as git:
        files = {f"{name}/SKILL.md": skill_md(name) for name in ("lint", "format")}
        yield git, git.repo("acme/skills", files)


@asynccontextmanager
async def ci_world(folder: Path, engine: str = "memory", **settings: Any) -> AsyncIterator[CiWorld]:
    clock = settings.pop("clock", None) or ManualClock()
    now: Callable[[], int] = clock.now
    with forge(folder / "git") as (git, repo):
        async with own_issuer(now) as github, own_issuer(now) as gitlab:
            named = settings.pop("issuers", (github.address, gitlab.address))
            issuers = tuple(map(ci_issuer, CI_ISSUERS, named))
            settings = {"public_url": ADDRESS, "rate_limits": "off", **settings}
            async with open_test_env(
                engine,
                folder,
                clock=clock,
                active=False,
                ci_issuers=issuers,
                source_rewrites=(git.rewrite(), git.rewrite("gitlab.com")),
                **settings,
            ) as env:
                await make_account(env, "olga", Role.AUTHOR)
                await set_owners(env, normalise(URL), Owner("olga", clock.now(), "file"))
                with active_env(env):
                    secret = await token_of(env, "olga", *SCOPES_OF[Role.AUTHOR], days=366)
                async with browser(create_app(env)) as client:
                    maintainer = {"authorization": f"Bearer {secret}"}
                    yield CiWorld(env, github, gitlab, git, repo, client, maintainer)
