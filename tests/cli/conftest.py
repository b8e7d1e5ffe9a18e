"""Commands, called in this process, over a store of their own."""

import asyncio
import os
import threading
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.cli.role_processes import SOURCE
from tests.support.compiled_rules import keep_compiled_rules
from tests.support.envs import open_test_env
from tests.support.people import make_account, token_of
from tests.support.streams import serving
from vskill_platform.cli import cli
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.store.people.accounts import Role
from vskill_platform.worker_context import run_with_worker_env

SKILL_MD = "---\nname: tidy\ndescription: Tidies a folder.\n---\n# Tidy\n"


@pytest.fixture
def data_dir(tmp_path, monkeypatch):
    """The only setting is the data folder, whatever the developer has set."""
    for name in [name for name in os.environ if name.startswith("VSKILL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("VSKILL_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def run(data_dir):
    """Calls a command as a person would."""

    def call(*arguments: object, code: int = 0, typed: str = "") -> Result:
        words = [str(one) for one in arguments]
        result = CliRunner().invoke(cli, words, input=typed, prog_name="vskill-platform")
        assert result.exit_code == code, result.output
        return result

    return call


@pytest.fixture
def skill(tmp_path):
    """A folder with a skill in it."""
    folder = tmp_path / "tidy"
    folder.mkdir()
    (folder / "SKILL.md").write_text(SKILL_MD)
    return folder


@pytest.fixture
def environment(data_dir):
    """What a process of ours needs, and no setting but the data folder."""
    keep_compiled_rules(data_dir)
    return {
        **os.environ,
        "PYTHONPATH": str(SOURCE),
        "VSKILL_DATA_DIR": str(data_dir),
        "PYTHONUNBUFFERED": "1",
    }


@pytest.fixture
def registry(tmp_path):
    """A registry on a real socket, run by a thread of its own: its address, a token of ann's, and `do`, which runs a
    coroutine function in its environment."""
    ready, stop = threading.Event(), threading.Event()
    facts: dict[str, Any] = {}

    async def serve_until_stopped() -> None:
        # What it signs is judged by the clock of the commands.
        opened = open_test_env("memory", tmp_path / "elsewhere", clock=SystemClock())
        async with opened as env, serving(env) as address:
            loop = asyncio.get_running_loop()

            def do(work):
                there = run_with_worker_env(env, lambda: work(env))
                return asyncio.run_coroutine_threadsafe(there, loop).result(60)

            await make_account(env, "ann", Role.AUTHOR)
            facts["do"] = do
            facts.update(address=address, token=await token_of(env, "ann", "read", "submit"))
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve_until_stopped()), daemon=True)
    thread.start()
    assert ready.wait(60)
    yield facts
    stop.set()
    thread.join(60)


@pytest.fixture
def home(tmp_path, monkeypatch, data_dir):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "vskill-platform"
