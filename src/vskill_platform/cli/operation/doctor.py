"""`doctor`: is everything that the settings name there, writable and in step, and can it do what work needs?"""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import TYPE_CHECKING

import click
import msgspec

from vskill_client.output import json_option, print_json, print_table
from vskill_core.errors import PlatformError, Shortage, Unsupported
from vskill_core.release import __version__
from vskill_platform.cli.process import run_async
from vskill_platform.ledger.clock import MAX_SKEW_MS
from vskill_platform.setting_values import shown_location
from vskill_platform.settings import Settings, process_settings

if TYPE_CHECKING:
    from vskill_platform.upkeep.scrub import CheckedPiece
    from vskill_platform.worker_context import Env

#: How long one check may take.
CHECK_WITHIN_S = 10.0
#: Pieces of damaged content that are named one by one.
MOST_PIECES = 20


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str
    #: Everything works now, and something should be changed.
    warning: bool = False

    @property
    def result(self) -> str:
        if not self.ok:
            return "PROBLEM"
        return "warning" if self.warning else "ok"


@click.command()
@click.option("--all-content", is_flag=True, help="Verify all stored content, however long that takes.")
@json_option
def doctor(*, all_content: bool, as_json: bool) -> None:
    """Check settings, store, clock, content and what work needs; exit code 1 if anything is wrong.

    A small skill is scanned. What a running worker lacks is told too: it may be allowed less than this command.

    Content is verified by its digest, for at most ten seconds unless --all-content is given.
    """
    checks = run_async(_examine(None if all_content else CHECK_WITHIN_S))
    if as_json:
        print_json(checks)
    else:
        rows = [(one.result, one.name, one.detail) for one in checks]
        print_table("doctor", ("result", "what", "detail"), rows)
    if not all(one.ok for one in checks):
        raise SystemExit(1)


async def _examine(content_within_s: float | None) -> list[Check]:
    """In the order in which things depend on each other; what could not be opened ends the list."""
    from vskill_platform.bootstrap import env_for
    from vskill_platform.observing.logs import configure_logging

    checks: list[Check] = []
    stage = "settings"
    try:
        settings = process_settings()
        configure_logging(msgspec.structs.replace(settings, log_level="error"))
        checks.append(Check(stage, ok=True, detail="every variable is known, budgets nest"))
        stage = "open"
        async with env_for(settings) as env:
            checks.append(Check(stage, ok=True, detail=await _check_opening(settings, env)))
            async for one in _look(env, content_within_s):
                checks.append(one)  # noqa: PERF401 - what was found stays when a later check raises
    except PlatformError as error:
        checks.append(Check(stage, ok=False, detail=error.message))
    return checks


async def _check_opening(settings: Settings, env: "Env") -> str:
    from vskill_platform.bootstrap import schema_version

    version = await asyncio.to_thread(schema_version, settings)
    schema = f" (schema version {version})" if version is not None else ""
    return f"{shown_location(settings.store)}{schema}, queue {env.broker.engine}, content {settings.blobs}"


async def _look(env: "Env", content_within_s: float | None) -> AsyncIterator[Check]:
    from vskill_platform.upkeep.work_needs import find_lack, find_scanner_lack

    writable = await check("store can be written", env.kv.check())
    yield writable
    if writable.ok:
        risks = await env.kv.risks()
        detail = "; ".join(risks) or "what is acknowledged is kept"
        yield Check("store is durable", ok=True, detail=detail, warning=bool(risks))
        yield await _check_release(env)
    yield await check("queue answers", env.broker.depth())
    answers = await check("content can be written", env.blobs.check())
    yield answers
    if answers.ok:
        yield await _check_content(env, content_within_s)
    yield await asyncio.to_thread(_disks, env.settings)
    yield _check_registry_name(env.settings)
    yield await _check_key(env)
    yield await _check_sealing(env)
    skew = abs(env.kv.now() - env.clock.now())
    detail = f"the store's clock is {skew} ms from this machine's"
    yield Check("clocks", ok=skew <= MAX_SKEW_MS, detail=detail)
    if writable.ok:
        for found in await _check_sign_in(env):
            yield found
    yield await asyncio.to_thread(_git)
    yield _needs("temporary files and child processes", await find_lack())
    yield _needs("scanner", await find_scanner_lack(env))
    if writable.ok:
        yield await _workers(env)
        async for one in _check_keys_of_processes(env):
            yield one
    models = [one for one in (env.settings.judge_model, env.settings.second_judge_model) if one]
    judges = " and ".join(models) or "none: degraded mode, SCANNED at most"
    yield Check("judge", ok=True, detail=judges)
    if writable.ok:
        async for one in _check_policy(env):
            yield one


async def _check_release(env: "Env") -> Check:
    """Which release uses the store; after an upgrade, what is new and what to do."""
    from vskill_platform.actions.operation.system import read_used_release
    from vskill_platform.web.documents import notes_since

    used = await read_used_release(env.kv)
    if used is None:
        return Check("release", ok=True, detail=f"{__version__}; no server has used this store yet")
    if not used.previous:
        return Check("release", ok=True, detail=f"{__version__}, and no other before it")
    notes = notes_since(used.previous)
    new = ", ".join(one.release for one in notes)
    to_do = " ".join(f"{one.release}: {one.to_do}" for one in notes if one.to_do) or "nothing."
    detail = (
        f"{__version__}, after {used.previous}. New since then: {new} (/docs/CHANGELOG.md). To do: {to_do}"
    )
    return Check("release", ok=True, detail=detail, warning=used.is_older)


def _check_registry_name(settings: Settings) -> Check:
    """Clients refuse a second marketplace of one name, and Codex loses one that is renamed."""
    is_default = settings.registry_name == Settings().registry_name
    if not (is_default and settings.public_url):
        return Check("marketplace name", ok=True, detail=settings.registry_name)
    detail = (
        f"it is {settings.registry_name}, as of every registry that chose none, and clients refuse two alike: set "
        "VSKILL_REGISTRY_NAME before people connect (a later change cuts Codex off)"
    )
    return Check("marketplace name", ok=True, detail=detail, warning=True)


async def _check_key(env: "Env") -> Check:
    """Which key this machine's processes sign with."""
    if env.signing is None:
        return Check("signing key", ok=True, detail="nothing is signed")
    try:
        own = (await env.signing.current()).public.key_id
    except PlatformError as error:
        return Check("signing key", ok=False, detail=error.message)
    where = "VSKILL_SIGNING_KEY" if env.settings.signing_key else "the keys folder"
    return Check("signing key", ok=True, detail=f"{own}, from {where}")


async def _check_keys_of_processes(env: "Env") -> AsyncIterator[Check]:
    """Which keys each running process has, a warning where one was not given those of this machine."""
    from vskill_platform.upkeep.work_needs import look_at_keys

    here, processes = await look_at_keys(env)
    for one in processes:
        there = one.sign.signing_key, one.sign.sealing_key
        detail = f"signs with {there[0] or 'no key'}, seals with {there[1] or 'no key'}"
        differs = "" if there == here else "; this machine has other keys"
        yield Check(
            f"keys of {one.role} {one.id}", ok=True, detail=f"{detail}{differs}", warning=bool(differs)
        )


async def _check_sealing(env: "Env") -> Check:
    """Which key seals credentials here, and which credentials this process cannot open or use."""
    from vskill_platform.actions.people.credentials import look_at_sealing
    from vskill_platform.sources.ssh import require_client
    from vskill_platform.worker_context import run_with_worker_env

    name = "sealing key"
    try:
        key_id, found = await run_with_worker_env(env, look_at_sealing)
    except PlatformError as error:
        return Check(name, ok=False, detail=error.message)
    own = f"{key_id} seals" if key_id else "none is set, so no credential can be added"
    closed = [f"{one.credential.address} of {one.namespace}: {one.problem}" for one in found if one.problem]
    if closed:
        detail = f"{own}; {len(closed)} of {len(found)} credentials cannot be opened: {' '.join(closed[:MOST_PIECES])}"
        return Check(name, ok=False, detail=detail)
    if deploy_keys := sum(bool(one.credential.public_key) for one in found):
        try:
            require_client()
        except PlatformError as error:
            detail = f"{own}; {deploy_keys} deploy keys wait: {error.message}"
            return Check(name, ok=False, detail=detail)
    outdated = sum(one.outdated for one in found)
    waits = (
        f", {outdated} of them sealed with an older key until the job `credentials` has run"
        if outdated
        else ""
    )
    return Check(name, ok=True, detail=f"{own}; {len(found)} credentials{waits}", warning=outdated > 0)


async def _check_content(env: "Env", within_s: float | None) -> Check:
    """Read and verify what the records name, until the time is over."""
    from vskill_platform.upkeep.scrub import check_records
    from vskill_platform.worker_context import run_with_worker_env

    bad: list[str] = []
    count = 0

    async def read_all() -> None:
        nonlocal count
        async for record in check_records():
            count += len(record.pieces)
            bad.extend(
                f"{piece.digest} is {problem} (named by {record.key})"
                for piece in record.pieces
                if (problem := _problem(piece))
            )

    rest = ""
    try:
        async with asyncio.timeout(within_s):
            await run_with_worker_env(env, read_all)
    except TimeoutError:
        rest = f" in {within_s:g} s; --all-content verifies the rest"
    if not bad:
        return Check("content is whole", ok=True, detail=f"{count} pieces verified{rest}")
    more = f" and {len(bad) - MOST_PIECES} more" if len(bad) > MOST_PIECES else ""
    detail = f"{len(bad)} of {count} pieces are not{rest}: {', '.join(bad[:MOST_PIECES])}{more}"
    return Check("content is whole", ok=False, detail=detail)


def _problem(piece: "CheckedPiece") -> str:
    if piece.damage is not None:
        return piece.damage.text("kind")
    return "" if piece.is_read else "not readable"


def _disks(settings: Settings) -> Check:
    from vskill_platform.machine.disk_space import filling, look_at_disks

    spaces = look_at_disks(settings)
    detail = ", ".join(f"{one.free_bytes // 1_048_576:,} MiB free for {one.kept}" for one in spaces)
    return Check("disks", ok=not filling(spaces, settings), detail=detail or "nothing is kept on a disk")


async def _check_policy(env: "Env") -> AsyncIterator[Check]:
    """Whether the policy in force can be used, and what it needs is here."""
    from vskill_client.wire.base import NoParameters
    from vskill_platform.actions.principal import OPERATOR
    from vskill_platform.actions.verdicts.policy import SHOW_POLICY

    policy = await SHOW_POLICY(env, OPERATOR, NoParameters())
    yield Check("policy", ok=not policy.problem, detail=policy.problem or f"{len(policy.rules)} rules")
    for name in policy.analysers:
        yield await asyncio.to_thread(_required_analyser, name, env.settings)


def _required_analyser(name: str, settings: Settings) -> Check:
    from vskill_platform.external_scan.contract import find_program
    from vskill_platform.external_scan.dispatch import remote_secrets

    where = "remote" if name in remote_secrets(settings) else find_program(name, settings)
    missing = "not installed here, and required: without it every skill waits for a reviewer"
    return Check(f"analyser {name}", ok=where is not None, detail=where or missing)


def _needs(name: str, lack: Shortage | None) -> Check:
    return Check(name, ok=lack is None, detail=lack.message if lack else "yes")


async def _workers(env: "Env") -> Check:
    from vskill_platform.upkeep.work_needs import look_at_running

    workers = await look_at_running(env)
    return Check("workers", ok=not workers.lacks, detail=" ".join(workers.lacks) or f"{workers.alive} alive")


async def _check_sign_in(env: "Env") -> list[Check]:
    """Whom signing in with GitHub lets in, a warning where it is set up for nobody; and whether each issuer answers."""
    from vskill_platform.actions.people.access import check_issuers, read_github_rule
    from vskill_platform.worker_context import run_with_worker_env

    rule = await run_with_worker_env(env, lambda: read_github_rule(env))
    is_on = bool(env.settings.github_client_id)
    detail = rule.in_words if is_on else "not set up"
    checks = [Check("GitHub sign-in", ok=True, detail=detail, warning=is_on and rule.lets_nobody_in)]
    for one in await run_with_worker_env(env, lambda: check_issuers(env)):
        detail = one.problem or f"it answers. {one.rule}"
        checks.append(Check(f"sign-in with {one.name}", ok=one.problem is None, detail=detail))
    return checks


def _git() -> Check:
    from vskill_platform.sources.command import check_git, find_git

    try:
        program = find_git()
    except Unsupported as error:
        return Check("git", ok=False, detail=error.message)
    return Check("git", ok=True, detail=f"{program}, version {check_git(program)}")


async def check(name: str, work: Awaitable[object], within_s: float = CHECK_WITHIN_S) -> Check:
    """Whether the work succeeds in time, and if not, why."""
    try:
        async with asyncio.timeout(within_s):
            await work
    except PlatformError as error:
        return Check(name, ok=False, detail=error.message)
    except TimeoutError:
        return Check(name, ok=False, detail=f"no answer within {within_s:g} s")
    return Check(name, ok=True, detail="yes")
