"""A registry that runs as a process of its own, and the operator's commands beside it."""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx2
from click.testing import CliRunner

from tests.support import lifetimes
from tests.support.compiled_rules import keep_compiled_rules
from tests.support.patience import PATIENCE_S, wait_until
from tests.support.people import session_of
from tests.support.records import put_copies
from vskill_platform.bootstrap import env_for
from vskill_platform.cli import cli
from vskill_platform.domain import keys
from vskill_platform.settings import Settings
from vskill_platform.store.skills.installs import installs_by_skill
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.worker_context import Env, run_with_worker_env

T = TypeVar("T")


def skill_md(name: str, body: str = "", version: str | None = None) -> bytes:
    head = f"name: {name}\ndescription: A skill called {name}, for tests of clients.\n"
    if version is not None:
        head += f"version: {version}\n"
    return f"---\n{head}---\n# {name}\n\n{body}\n".encode()


class Registry:
    """The address of a running server, and what an operator does on its machine."""

    def __init__(self, folder: Path, url: str, variables: Mapping[str, str]) -> None:
        self.folder = folder
        self.url = url
        self._variables = dict(variables)
        self._made = 0

    def command(self, *arguments: str, code: int = 0) -> str:
        """Called in this process, where everything is loaded already; a thread has room for its event loop."""
        others = {name: None for name in os.environ if name.startswith("VSKILL_")}
        with ThreadPoolExecutor(1) as thread:
            done = thread.submit(
                CliRunner().invoke,
                cli,
                arguments,
                env={**others, **self._variables},
                prog_name="vskill-platform",
            ).result(PATIENCE_S)
        # Click ends without a word where a pipe breaks, so it is told where that was.
        where = "".join(traceback.format_exception(done.exception)) if done.exception is not None else ""
        assert done.exit_code == code, done.output + where
        return done.stdout

    def publish(self, slug: str, files: Mapping[str, bytes], *, namespace: str = "tests") -> str:
        """Files of one skill, through the real pipeline; an executable one has a name that ends in `.sh`."""
        self._made += 1
        root = self.folder / "sources" / str(self._made) / slug
        write_files(root, files)
        self.command("submit", str(root), "--namespace", namespace, "--name", slug, "--watch")
        return f"upload~{namespace}/skills/{slug}"

    def block(self, canonical: str, reason: str) -> None:
        namespace, _, slug = canonical.split("/")
        place = f"upload://{namespace.removeprefix('upload~')}/{slug}"
        self.command("block", "add", "place", place, "--reason", reason, "--severity", "critical")

    def token(self, account: str) -> str:
        self.command("admin", "create", account, "--role", "author", "--generate")
        made = json.loads(self.command("token", "create", account, "--name", "tests", "--json"))
        return str(made["token"])

    def installs(self, canonical: str) -> int:
        """How many were counted until now; a job takes the number over into lists."""
        return self._do(lambda _: installs_by_skill()).get(canonical, 0)

    def session(self, account: str) -> str:
        """A browser's token, without the way through the sign-in page."""
        return self._do(lambda env: session_of(env, account))

    def device_code(self) -> str:
        """The code that a machine shows, as soon as one asks."""
        found: list[str] = []

        def has_come() -> bool:
            found[:] = [entry.key for entry in self._do(lambda env: env.kv.scan(keys.device.prefix)).items]
            return bool(found)

        wait_until(has_come, "no machine asks to be signed in")
        return found[0].removeprefix(keys.device.prefix)

    def _do(self, work: Callable[[Env], Awaitable[T]]) -> T:
        """Work on the registry's own store, beside its server."""
        settings = Settings(data_dir=str(self.folder / "data"))

        async def act() -> T:
            async with env_for(settings) as env:
                return await run_with_worker_env(env, lambda: work(env))

        return asyncio.run(act())

    def get(self, path: str, **options: Any) -> httpx2.Response:
        return httpx2.get(self.url + path, timeout=PATIENCE_S, **options)


def write_files(root: Path, files: Mapping[str, bytes]) -> None:
    for path, data in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        if path.endswith(".sh"):
            target.chmod(0o755)


def read_files(root: Path, hidden: tuple[str, ...] = ()) -> dict[str, bytes]:
    """What is below a folder, without what a client notes there for itself."""
    found = {one.relative_to(root).as_posix(): one.read_bytes() for one in root.rglob("*") if one.is_file()}
    return {path: data for path, data in found.items() if not path.startswith(hidden or ("\0",))}


def add_many(registry: Registry, canonical: str, count: int) -> None:
    """Copies of a published skill, faster than the pipeline could publish them."""

    async def copy() -> None:
        async with env_for(Settings(data_dir=str(registry.folder / "data"))) as env:

            async def put() -> None:
                await put_copies(env, await get_skill(canonical), count)

            await run_with_worker_env(env, put)

    asyncio.run(copy())


@contextmanager
def running(folder: Path, **variables: str) -> Iterator[Registry]:
    """`vskill-platform serve` on a free port of loopback, until the block ends."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("VSKILL_")}
    policy = folder / "policy.yaml"
    policy.write_text("rules: [{name: look-alike, when: 'signals.look_alike != \"\"', then: review}]")
    own = {
        **plain,
        "VSKILL_DATA_DIR": str(folder / "data"),
        "VSKILL_RATE_LIMITS": "off",
        # Other tests keep the cores busy, and these wait for its work.
        # All tests of a client publish as one owner, and some of them block what they published.
        "VSKILL_POLICY": str(policy),
        # Clients of these tests update right after a publication.
        "VSKILL_GIT_LIST_INTERVAL_MS": "1",
        "VSKILL_BANDIT_COMMAND": "off",
        "VSKILL_SEMGREP_COMMAND": "off",
        **variables,
    }
    keep_compiled_rules(folder / "data")
    log = folder / "server.log"
    with log.open("wb") as output:
        process = lifetimes.start(
            [sys.executable, "-m", "vskill_platform", "serve", "--port", "0"],
            cwd=folder,
            env=own,
            stdout=output,
            stderr=output,
        )
    try:
        yield Registry(folder, _address(process, log), own)
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        found = re.search(r"http://127\.0\.0\.1:\d+", log.read_text("utf-8", "replace"))
        if found is not None:
            return found.group()
        assert process.poll() is None, log.read_text("utf-8", "replace")
        time.sleep(0.05)
    raise AssertionError(log.read_text("utf-8", "replace"))
