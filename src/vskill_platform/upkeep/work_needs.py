"""Tries what work needs of this machine besides its stores: a temporary file, a child process, git, the scanner.

Readiness, `doctor` and the workers' signs of life ask here. The answer is a Shortage that says what is missing and how
to get it, or None.
"""

import asyncio
import os
import shutil
import subprocess
import tempfile

from vskill_core.content import SkillFile
from vskill_core.errors import Shortage
from vskill_core.findings import ScanStatus
from vskill_platform.machine.shortages import MACHINE
from vskill_platform.store.operation.workers import (
    LiveProcess,
    WorkersSeen,
    live_processes,
    look_at_workers,
    own_key_id,
    own_sealing_key_id,
)
from vskill_platform.tiers.pool import SCANNER
from vskill_platform.worker_context import Env, run_with_worker_env

_SKILL = SkillFile(
    "SKILL.md", "100644", b"---\nname: probe\ndescription: A probe of the scanner.\n---\n# Probe\n"
)
#: Timeout of `git --version`, on a busy machine.
_GIT_S = 30.0


async def find_lack() -> Shortage | None:
    """What keeps this process from working; it costs a temporary file and a child process."""
    return await asyncio.to_thread(_look)


def _look() -> Shortage | None:
    try:
        with tempfile.TemporaryFile() as file:
            file.write(b"probe")
    except OSError as error:
        fix = "set TMPDIR to a folder that this account may write"
        return _lack(f"No temporary file can be written ({os.strerror(error.errno or 0)}): {fix}.", fix)
    program = shutil.which("git")
    # Without git, uploads are still verified: a named degraded mode.
    try:
        if program is not None:
            subprocess.run([program, "--version"], capture_output=True, timeout=_GIT_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        fix = "let this account start processes, and look whether git --version works for it"
        return _lack(f"A child process cannot be run ({error}): {fix}.", fix)
    return None


async def find_scanner_lack(env: Env) -> Shortage | None:
    """What keeps the scanner from scanning a small skill; starts its child process if none runs."""
    try:
        report = await env.scanner.scan((_SKILL,))
    except Shortage as error:
        return error
    if report.status is ScanStatus.COMPLETE:
        return None
    return Shortage(f"The scanner does not work: {report.problem}.", host=SCANNER)


async def look_at_running(env: Env) -> WorkersSeen:
    """What the live workers report about themselves: they may have lower limits than this process."""
    return await run_with_worker_env(env, look_at_workers)


async def look_at_keys(env: Env) -> tuple[tuple[str, str], list[LiveProcess]]:
    """The keys that sign and seal here, and the live processes with theirs."""
    here = await own_key_id(env) or "", await own_sealing_key_id(env)
    return here, await run_with_worker_env(env, live_processes)


def _lack(message: str, fix: str) -> Shortage:
    return Shortage(message, host=MACHINE, fix=fix)
