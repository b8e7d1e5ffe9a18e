"""A registry with skills in it, for tests of the web side: repositories as a table, the real pipeline, and a client
that calls the application without a network."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from tests.support.acting import create_token
from tests.support.envs import active_env, open_test_env, run_until_quiet, skill_files
from tests.support.faults import ListedSources
from tests.support.system_reads import get_submission
from vskill_core.content import SkillFile, digest_of_files, skill_file_of
from vskill_core.errors import NoSkillFound, SourceGone
from vskill_core.identity import Identity, normalise
from vskill_core.kind import Kind, is_manifest, kind_of
from vskill_platform.domain.people.namespace import PUBLIC_ONLY, Audiences
from vskill_platform.domain.people.token import SCOPES_OF
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.intake.submit import submit_repository
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.sources.contract import Fetched, Place, Survey
from vskill_platform.store.people.accounts import Role, create_user
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.web.app import create_app
from vskill_platform.worker_context import Env


class ListedRepositories(ListedSources):
    """Repositories that can be looked into; each change of a place's files is another commit."""

    def put(self, url: str, path: str, files: tuple[SkillFile, ...]) -> Identity:
        identity = normalise(url, path)
        self.places[identity.key] = files
        return identity

    async def inspect(self, identity: Identity, commit: str | None = None) -> Place:
        found = self.places.get(identity.key)
        if isinstance(found, Exception):
            raise found
        if found is None:
            raise NoSkillFound(f"There is no SKILL.md at {identity.key}.")
        commit = digest_of_files(found)[:40]
        if kind_of(found) is Kind.PLUGIN:
            manifest = next(one for one in found if is_manifest(one.path, one.data))
            return Place(identity, commit, kind=Kind.PLUGIN, manifest=manifest)
        return Place(identity, commit, skill_file_of(found).data)

    async def fetch(self, submission: Submission) -> Fetched:
        fetched = await super().fetch(submission)
        return Fetched(fetched.files, commit=digest_of_files(fetched.files)[:40])

    async def survey(self, identity: Identity, commit: str | None = None) -> Survey:
        keys = [key for key in self.places if f"{key}/".startswith(f"{identity.repo_key}/")]
        if not keys:
            raise SourceGone(f"There is no repository {identity.url}.")
        paths = sorted(key.removeprefix(identity.repo_key).strip("/") for key in keys)
        wanted = [
            path for path in paths if f"{path}/".startswith(f"{identity.path}/" if identity.path else "")
        ]
        if not wanted:
            raise NoSkillFound
        places = [await self.inspect(msgspec.structs.replace(identity, path=path)) for path in wanted]
        return Survey(identity, tuple(places))


class Shelf(msgspec.Struct, frozen=True):
    """An open registry and a client of it."""

    env: Env
    client: httpx2.AsyncClient
    sources: ListedRepositories

    async def publish(
        self,
        name: str,
        body: str = "",
        *,
        repo: str = "https://github.com/acme/tools",
        version: str | None = None,
        extra: tuple[SkillFile, ...] = (),
        submitter: str | None = None,
        audiences: Audiences = PUBLIC_ONLY,
    ) -> PublishedSkill:
        """Through the real pipeline; the skill as it is then."""
        self.sources.put(repo, f"skills/{name}", skill_files(name, body, version, extra=extra))
        with active_env(self.env):
            done = await submit_repository(repo, f"skills/{name}", by=SubmittedBy(submitter, audiences))
            await run_until_quiet(self.env)
            assert done.submission is not None
            record = await get_submission(done.submission.id)
            assert record.published is not None, record.history[-1]
            return await get_skill(record.published.removeprefix("skill:"))

    async def publish_folder(self, folder: str, name: str) -> None:
        """A skill whose folder is called otherwise than its front matter calls it."""
        repo = "https://github.com/acme/tools"
        self.sources.put(repo, f"skills/{folder}", skill_files(name, folder))
        with active_env(self.env):
            await submit_repository(repo, f"skills/{folder}")
            await run_until_quiet(self.env)

    async def token(
        self, account: str = "ada", role: Role = Role.AUTHOR, scopes: tuple[str, ...] = ()
    ) -> dict[str, str]:
        """The headers of an account that was made for this."""
        wanted = scopes or SCOPES_OF[role]
        with active_env(self.env):
            await create_user(account, role, by="system", reason="a test")
            made = await create_token(account, "test", wanted, by="system")
        return {"Authorization": f"Bearer {made.secret}"}


@asynccontextmanager
async def open_shelf(tmp_path: Path, engine: str = "memory", **overrides: Any) -> AsyncIterator[Shelf]:
    overrides.setdefault("clock", SystemClock())
    clock = overrides.pop("clock")
    async with open_test_env(engine, tmp_path, clock=clock, active=False, **overrides) as opened:
        sources = ListedRepositories(opened.blobs)
        env = msgspec.structs.replace(opened, sources=sources)
        transport = httpx2.ASGITransport(create_app(env), client=("192.0.2.7", 1234))
        async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as client:
            yield Shelf(env, client, sources)
