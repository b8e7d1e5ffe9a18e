"""A worker process for tests: the product's own `worker` and `schedule` roles, with a scanner that is slow, or
deadly, where a skill's text says so. Run as a script; what it does is set by variables of its own:

- `TEST_SCAN_S`: how long a scan of a text with the word `slow` takes, in seconds; `0.2-0.6` draws from a range.
- `TEST_CLAIM_MS`: the length of claims and leases instead of 15 s, with renewals and recovery to match, so that a
  test of many deaths does not wait for minutes. The constants are changed before any module reads them.
- `TEST_SCANS`: a file that gets one line per scan: this process, the skill, and what else is being scanned here.

A text with the word `poison` kills the process in the middle of its scan, as an out-of-memory kill would.
"""

import asyncio
import os
import random
import signal
import sys
from collections.abc import Sequence
from importlib import import_module as _import_module
from pathlib import Path
from typing import Any

import msgspec

USUAL_CLAIM_MS = 15_000


def import_module(name: str) -> Any:
    """Imported late, because constants are changed first; Any, because they are changed at all."""
    return _import_module(name)


def shorten_claims(claim_ms: int) -> None:
    """Change what the modules below import by name; nothing that reads it may be imported before."""
    attempts = import_module("vskill_platform.domain.submissions.attempts")
    attempts.CLAIM_MS = claim_ms
    attempts.RENEW_EVERY_MS = claim_ms // 3
    broker = import_module("vskill_platform.ledger.broker.contract")
    broker.LEASE_MS = claim_ms
    broker.Message.extend.__defaults__ = (claim_ms,)
    jobs = import_module("vskill_platform.queue.jobs")
    jobs.JOBS = tuple(
        msgspec.structs.replace(job, every_ms=claim_ms // 3, budget_ms=claim_ms)
        if job.name == "recovery"
        else job
        for job in jobs.JOBS
    )


class SlowScanner:
    """The scanner of the environment, after a while."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.inside: set[str] = set()

    @property
    def ruleset(self) -> str:
        return str(self._inner.ruleset)

    async def scan(self, files: Sequence[Any]) -> Any:
        text = b"".join(file.data for file in files)
        name = import_module("vskill_scan.reading.manifest").read_manifest(files[0].data).name
        self.inside.add(name)
        _note_scan(name, self.inside)
        if b"poison" in text:
            await asyncio.sleep(0.05)
            os.kill(os.getpid(), signal.SIGKILL)
        if b"slow" in text:
            await asyncio.sleep(_seconds())
        self.inside.discard(name)
        return await self._inner.scan(files)


def slow_down(bootstrap: Any, claim_ms: int) -> None:
    """Put the slow scanner around the one that every environment of this process is opened with."""
    open_env = bootstrap.open_env
    manifest = import_module("vskill_scan.reading.manifest")
    # Run as a script, so the project's folder is not on the path by itself.
    sys.path.append(str(Path(__file__).resolve().parents[2]))
    scanners = import_module("tests.support.scanners")
    pace = import_module("vskill_platform.worker_context").Pace(look_every_s=min(1.0, claim_ms / 3000))

    async def open_scanner(settings: Any, stack: Any) -> Any:
        """Without child processes: these tests kill workers many times, and rules take a second to compile."""
        return scanners.structure_scanner(manifest.read_manifest, settings.known_bad_digests)

    bootstrap.open_scanner = open_scanner

    async def open_slow(*arguments: Any, **options: Any) -> Any:
        env = await open_env(*arguments, **options)
        return msgspec.structs.replace(env, scanner=SlowScanner(env.scanner), pace=pace)

    bootstrap.open_env = open_slow


def _note_scan(name: str, inside: set[str]) -> None:
    if path := os.environ.get("TEST_SCANS"):
        line = f"{os.getpid()} {name} {','.join(sorted(inside))}\n"
        with Path(path).open("a", encoding="utf-8") as log:
            log.write(line)


def _seconds() -> float:
    least, _, most = os.environ.get("TEST_SCAN_S", "0").partition("-")
    return random.uniform(float(least), float(most or least))


def main() -> None:
    claim_ms = int(os.environ.get("TEST_CLAIM_MS", USUAL_CLAIM_MS))
    if claim_ms != USUAL_CLAIM_MS:
        shorten_claims(claim_ms)
    slow_down(import_module("vskill_platform.bootstrap"), claim_ms)
    process = import_module("vskill_platform.cli.process")
    serve = import_module("vskill_platform.cli.operation.serve")
    settings = import_module("vskill_platform.settings").process_settings()
    process.run_async(serve._until_stopped(settings, serve.Roles(work=True, schedule=True)))


if __name__ == "__main__":
    main()
