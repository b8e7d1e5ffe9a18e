"""A registry, a namespace with a private repository on a real git server, and people inside and outside of it."""

import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from tests.support.envs import active_env, open_test_env
from tests.support.git_server import GitServer, Repo, git_server, skill_md
from tests.support.namespaces import manage
from tests.support.people import browser, make_account, token_of
from vskill_core.identity import normalise
from vskill_platform.domain.people.namespace import (
    Member,
    Namespace,
    NamespaceRole,
    Visibility,
    namespace_of,
    with_member,
)
from vskill_platform.domain.people.token import SCOPES_OF
from vskill_platform.signing.sealing import SealingRing
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.people.namespaces import NamespaceChange, change_namespace
from vskill_platform.web.app import create_app
from vskill_platform.worker_context import Env

#: A secret that must be found nowhere.
CANARY = "canary-5d1f0c77-never-to-be-seen"
#: A key as `openssl rand -base64 32` makes it.
KEY = base64.b64encode(bytes(range(32))).decode()
NEWER_KEY = base64.b64encode(bytes(range(1, 33))).decode()
WHY = "a test"
MOST_LOOKS = 3
#: Who may what in the namespace; `sam` is a stranger.
ROLES = {
    "olga": NamespaceRole.OWNER,
    "mia": NamespaceRole.AUTHOR,
    "rita": NamespaceRole.READER,
    "sam": None,
}


def basic(secret: str, user: str = "x-access-token") -> str:
    return f"Basic {base64.b64encode(f'{user}:{secret}'.encode()).decode()}"


#: The canary in each form that it could have somewhere.
FORMS = [CANARY.encode(), basic(CANARY).removeprefix("Basic ").rstrip("=")[:-1].encode()]


def holding_canary(found: bytes) -> bool:
    return any(form in found for form in FORMS)


def look_at_processes() -> list[str]:
    """Every process whose arguments or environment hold the canary."""
    found = []
    for process in Path("/proc").iterdir():
        for part in ("cmdline", "environ"):
            with suppress(OSError):
                if process.name.isdigit() and holding_canary((process / part).read_bytes()):
                    found.append(f"{process}/{part}")
    return found


class PrivateWorld(msgspec.Struct, frozen=True):
    """The git server is a private host, so its repositories have its own address."""

    env: Env
    git: GitServer
    repo: Repo
    #: Of the repository.
    url: str
    #: The namespace's name.
    namespace: str
    client: httpx2.AsyncClient
    #: Headers by account.
    people: dict[str, dict[str, str]]
    #: All that was answered.
    answers: list[bytes]

    async def add_token(self, who: str = "olga", **fields: Any) -> httpx2.Response:
        sent = {"repoUrl": self.url, "token": CANARY, "reason": WHY, **fields}
        return await self.post(f"namespaces/{self.namespace}/credentials/token", who, sent)

    async def add_key(self, who: str = "olga", **fields: Any) -> httpx2.Response:
        sent = {"repoUrl": self.url, "reason": WHY, **fields}
        return await self.post(f"namespaces/{self.namespace}/credentials/key", who, sent)

    async def submit(self, who: str | None, **fields: Any) -> httpx2.Response:
        return await self.post("submissions", who, {"repoUrl": self.url, "skillPath": "lint", **fields})

    async def post(self, path: str, who: str | None, sent: dict[str, Any]) -> httpx2.Response:
        headers = self.people[who] if who else {}
        return await self.client.post(f"/api/v1/{path}", json=sent, headers=headers)


@asynccontextmanager
async def private_world(
    folder: Path,
    engine: str = "memory",
    visibility: Visibility | None = Visibility.TEAM,
    ssh_port: int = 0,
    **settings: Any,
) -> AsyncIterator[PrivateWorld]:
    """With `ssh_port` the repository's address is that of a server for SSH, on the same repositories."""
    with git_server(folder / "git") as git:
        repo = git.repo("acme/skills", {f"{name}/SKILL.md": skill_md(name) for name in ("lint", "format")})
        git.private["/acme"] = basic(CANARY)
        by_ssh = f"ssh://git@127.0.0.1:{ssh_port}"
        url = f"{by_ssh}/acme/skills" if ssh_port else f"{git.url}acme/skills"
        namespace = namespace_of(normalise(url))
        settings = {
            "rate_limits": "off",
            "sealing": SealingRing(KEY),
            "allowed_hosts": (),
            "allowed_private_hosts": (git.url.rstrip("/"), f"ssh://127.0.0.1:{ssh_port}"),
            **settings,
        }
        async with open_test_env(engine, folder / "data", active=False, **settings) as env:
            people = {}
            for name in ROLES:
                await make_account(env, name, Role.AUTHOR)
                with active_env(env):
                    token = await token_of(env, name, *SCOPES_OF[Role.AUTHOR], days=366)
                people[name] = {"authorization": f"Bearer {token}"}
            await join(env, namespace, visibility)
            answers: list[bytes] = []

            async def note(answer: httpx2.Response) -> None:
                answers.append(await answer.aread() + repr(answer.headers).encode())

            async with browser(create_app(env)) as client:
                client.event_hooks["response"].append(note)
                yield PrivateWorld(env, git, repo, url, namespace, client, people, answers)


async def join(env: Env, namespace: str, visibility: Visibility | None) -> None:
    """Make everybody a member in their role."""
    await manage(env, namespace, visibility, "user:olga", role=NamespaceRole.OWNER)

    async def decide(known: Namespace) -> NamespaceChange:
        for name, role in ROLES.items():
            if role is not None:
                known = with_member(known, Member(f"user:{name}", role, 0, "added"))
        return NamespaceChange(known)

    with active_env(env):
        await change_namespace(namespace, decide, AuditNote("members", namespace, "system", WHY))


@contextmanager
def watched(git: GitServer) -> Iterator[list[str]]:
    """Where the canary is in processes while git waits for an answer to a request that carries it."""
    found: list[str] = []

    def look() -> None:
        # The question and the fetch; each look takes long on a busy machine.
        if len(git.authorized) <= MOST_LOOKS:
            found.extend(look_at_processes())

    git.on_authorized = look
    try:
        yield found
    finally:
        git.on_authorized = lambda: None
