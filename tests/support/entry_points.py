"""The same action through each of its entry points: a page's form, the JSON API, a command on the server's machine, and the
same command on another one. Each acts on a store of its own that a test has filled, and answers with the records that are
there afterwards, without what is of one run: ids, times, secrets, and which token was shown."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import re2
from click.testing import CliRunner

from tests.support.envs import active_env, open_test_env
from tests.support.people import browser, make_account, signed_in, token_of
from tests.support.streams import serving
from vskill_client.registries import TOKEN_VARIABLE
from vskill_platform.cli import cli
from vskill_platform.domain.people.token import SCOPES_OF
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.store.people.accounts import Role
from vskill_platform.web.app import create_app
from vskill_platform.worker_context import Env

#: Fills a store; what it answers with may stand in braces in paths, fields and arguments.
Prepare = Callable[[Env], Awaitable[dict[str, str]]]
#: Records that actions write.
KINDS = (
    *(
        "audit:",
        "block:",
        "name:",
        "open_report:",
        "report:",
        "skill:",
        "sub:",
        "subrun:",
        "suppress:",
        "task:",
    ),
    *("control:queue", "control:namespaces", "namespace:", "team:", "usage:", "token:", "user:"),
)
_ID = re2.compile(r"\b[0-9a-hjkmnp-tv-z]{26}\b|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
#: A password's hash, and a token's.
_HASH = re2.compile(r"\$argon2id\$.*|^[0-9a-f]{64}$")
_FIRST_TIME = 100_000_000_000


class EntryPoints:
    """One action's entry points. `account` has the role that the action needs."""

    def __init__(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        prepare: Prepare,
        role: Role,
        account: str = "rob",
    ) -> None:
        self._tmp_path = tmp_path
        self._monkeypatch = monkeypatch
        self._prepare = prepare
        self._role = role
        self._account = account

    async def by_form(self, path: str, *, status: int = 303, **fields: str) -> list[Any]:
        async def act(env: Env, facts: dict[str, str]) -> None:
            async with signed_in(create_app(env), env, self._account, self._role) as person:
                sent = {name: value.format_map(facts) for name, value in fields.items()}
                answer = await person.send(path.format_map(facts), **sent)
                assert answer.status_code == status, answer.text[:500]

        return await self._run("form", act)

    async def by_json(self, path: str, *, method: str = "POST", **body: Any) -> list[Any]:
        async def act(env: Env, facts: dict[str, str]) -> None:
            token = await token_of(env, self._account, *SCOPES_OF[self._role])
            headers = {"authorization": f"Bearer {token}"}
            async with browser(create_app(env)) as client:
                sent = {name: _filled(value, facts) for name, value in body.items()}
                answer = await client.request(method, path.format_map(facts), json=sent, headers=headers)
                assert answer.status_code < 300, answer.text[:500]

        return await self._run("json", act)

    async def by_command(self, *arguments: str, typed: str = "") -> list[Any]:
        """On the server's machine, as the account."""
        folder = self._tmp_path / "command"

        async def act(_env: Env, _facts: dict[str, str]) -> None:
            return None

        facts: dict[str, str] = {}
        await self._run("command", act, facts)
        self._monkeypatch.setenv("VSKILL_DATA_DIR", str(folder))
        self._monkeypatch.setenv("VSKILL_STORE", f"sqlite:{folder / 'vskill.db'}")
        await _command(["--as", self._account, *(one.format_map(facts) for one in arguments)], typed)
        async with open_test_env("sqlite", folder) as env:
            return await records_in(env, self._account)

    async def by_remote_command(self, *arguments: str, typed: str = "") -> list[Any]:
        """On another machine, with a token."""

        async def act(env: Env, facts: dict[str, str]) -> None:
            self._monkeypatch.setenv(
                TOKEN_VARIABLE, await token_of(env, self._account, *SCOPES_OF[self._role])
            )
            async with serving(env) as address:
                await _command(["--registry", address, *(one.format_map(facts) for one in arguments)], typed)

        return await self._run("remote", act)

    async def _run(
        self,
        name: str,
        act: Callable[[Env, dict[str, str]], Awaitable[None]],
        facts: dict[str, str] | None = None,
    ) -> list[Any]:
        folder = self._tmp_path / name
        folder.mkdir()
        found = {} if facts is None else facts
        async with open_test_env("sqlite", folder, rate_limits="off", worker_id="w1") as env:
            await make_account(env, self._account, self._role)
            with active_env(env):
                found |= await self._prepare(env)
            await act(env, found)
            return await records_in(env, self._account)


def _filled(value: Any, facts: dict[str, str]) -> Any:
    return value.format_map(facts) if isinstance(value, str) else value


async def _command(words: list[str], typed: str) -> None:
    # In a thread, because a command starts an event loop of its own.
    done = await asyncio.to_thread(
        lambda: CliRunner().invoke(cli, words, input=typed, prog_name="vskill-platform")
    )
    assert done.exit_code == 0, done.output


async def records_in(env: Env, account: str = "") -> list[Any]:
    """Every record of these kinds, as text that can be compared and sorted; without what the test made for the account
    that acts."""
    found: list[str] = []
    for kind in KINDS:
        async for page in iterate_pages(env.kv, kind):
            for entry in page.items:
                record = _without_run(json.loads(entry.value), keeps_hashes=kind not in {"token:", "user:"})
                if not _of_the_test(kind, record, account):
                    found.append(json.dumps([kind, record], sort_keys=True))
    return sorted(found)


def _of_the_test(kind: str, record: dict[str, Any], account: str) -> bool:
    """The account that acts, and its session or token."""
    if kind == "audit:":
        return record["action"] in {"signed in", "signed out"} or record["by"] == "system"
    if kind == "user:":
        return bool(record["name"] == account)
    return bool(kind == "token:" and record["name"] == "test")


def _without_run(value: Any, *, keeps_hashes: bool) -> Any:
    if isinstance(value, dict):
        return {
            name: _without_run(one, keeps_hashes=keeps_hashes)
            for name, one in value.items()
            if name not in {"token", "session", "request_id"}
        }
    if isinstance(value, list):
        return [_without_run(one, keeps_hashes=keeps_hashes) for one in value]
    is_text = isinstance(value, str)
    if ((is_text and value.isdigit()) or isinstance(value, int)) and int(value) >= _FIRST_TIME:
        return "a time"
    if not is_text:
        return value
    return _ID.sub("an id", value if keeps_hashes else _HASH.sub("a hash", value))
