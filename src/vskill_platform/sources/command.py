"""The git command, with everything switched off that a hostile repository could use.

Each call has an environment of its own: no system or user configuration, no hooks, prompts, credential helpers or
proxies, no protocol but the one of its route; a credential is in files of its own (`sources.credential`). Its processes
form a group that is killed when the call is cancelled, takes too long or writes too much. Foreign text never becomes an
option.
"""

import asyncio
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path

import msgspec

from vskill_core.errors import LimitExceeded, Shortage, Unsupported
from vskill_platform import __version__
from vskill_platform.ledger.clock import TimeLimit
from vskill_platform.machine.child_processes import EndedProgram, RunningProcess, start_program
from vskill_platform.machine.child_side import limit_resource
from vskill_platform.machine.shortages import MACHINE, has_memory_for, lack
from vskill_platform.sources.addresses import Route
from vskill_platform.sources.credential import SecretFiles, secret_files
from vskill_platform.sources.ssh import check_connection

#: Address space of one process: a pack cannot ask for more.
MOST_MEMORY = 2 * 1024**3
#: CPU time of one process, as a share of the call's time. A process that needs more is a bomb, not a slow host.
CPU_SHARE = 0.6
#: How often the size on disk is checked; the kernel's limit per file holds in between.
LOOK_EVERY_S = 0.1
#: The oldest git that knows every option and setting that is used here.
OLDEST_GIT = (2, 37)

CONFIG: Mapping[str, str] = {
    "protocol.allow": "never",
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.symlinks": "false",
    # Fetched objects are a cache: losing them in a power cut is fine.
    "core.fsync": "none",
    # Larger objects are streamed instead of held in memory.
    "core.bigFileThreshold": "1m",
    "credential.helper": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "pack.threads": "1",
    "transfer.unpackLimit": "1",
    "transfer.bundleURI": "false",
    "fetch.recurseSubmodules": "false",
    "submodule.recurse": "false",
    "protocol.version": "2",
    "http.followRedirects": "false",
    "http.proxy": "",
    # Lets a process that outlives us end by itself.
    "http.lowSpeedLimit": "100",
    "http.lowSpeedTime": "30",
    "http.userAgent": f"git/vskill-platform-{__version__}",
}


class CommandLimits(msgspec.Struct, frozen=True):
    """What one call may cost."""

    seconds: float = 20.0
    #: Limit of its output.
    out_bytes: int = 1024 * 1024
    #: Limit of what it writes to disk.
    disk_bytes: int = 256 * 1024 * 1024


class TimedOut(Exception):
    """The call took longer than it may, and its processes are gone. It says nothing about the content: a call that
    computes too much ends before that, by its limit of processor time."""


class CutOff(Exception):
    """The call ended before it had said everything, over a limit that was set for it."""


class ObjectReader:
    """Objects of a fetched repository, from one `git cat-file`: their sizes first, then the bytes of those that are
    wanted."""

    def __init__(self, process: RunningProcess) -> None:
        self._out = process.reader
        self._in = process.writer

    async def sizes(self, ids: Sequence[str], wanted_kind: bytes = b"blob") -> dict[str, int | None]:
        """The size of each blob; None for an object that was not fetched or is of another kind."""
        found: dict[str, int | None] = {}

        async def read() -> None:
            for wanted in ids:
                kind, size = _header(await self._out.readuntil(b"\n"))
                found[wanted] = size if kind == wanted_kind else None

        await asyncio.gather(self._ask("info", ids), read())
        return found

    async def contents(self, ids: Sequence[str]) -> dict[str, bytes]:
        """The bytes of blobs whose sizes were checked before."""
        found: dict[str, bytes] = {}

        async def read() -> None:
            for wanted in ids:
                _, size = _header(await self._out.readuntil(b"\n"))
                found[wanted] = await self._out.readexactly(size)
                await self._out.readexactly(1)

        await asyncio.gather(self._ask("contents", ids), read())
        return found

    async def _ask(self, command: str, ids: Sequence[str]) -> None:
        lines = "".join(f"{command} {one}\n" for one in ids)
        self._in.write(f"{lines}flush\n".encode("ascii"))
        await self._in.drain()


def _header(line: bytes) -> tuple[bytes, int]:
    """`<id> <kind> <size>`, or `<id> missing`."""
    fields = line.rstrip(b"\n").split(b" ")
    return (fields[1], int(fields[2])) if len(fields) == 3 else (b"missing", 0)


class Git:
    """Runs git in bare repositories that `make_repository` made."""

    def __init__(self, program: str) -> None:
        self._program = program

    async def run(
        self, *arguments: str, folder: Path, limits: CommandLimits, route: Route | None = None
    ) -> EndedProgram:
        """Run one call. Raises TimedOut or LimitExceeded after killing it, Shortage if the system killed it, SshFailed
        if its connection failed."""
        credential, url, pin = (route.credential, route.url, route.pin) if route else (None, "", "")
        async with (
            secret_files(credential, url, pin, folder, limits.seconds) as secrets,
            self._process(arguments, folder, limits, route, secrets) as process,
        ):
            try:
                async with TimeLimit(limits.seconds), _watch_size(folder, limits, route):
                    done = await process.read_to_end(limits.out_bytes)
            except TimeoutError:
                raise TimedOut from None
            if done.code and secrets.folder is not None:
                await asyncio.to_thread(check_connection, secrets.folder, done.err)
        if done.code < 0:
            check_ending(done.code)
        return done

    @asynccontextmanager
    async def objects(self, folder: Path, limits: CommandLimits) -> AsyncIterator[ObjectReader]:
        """A reader of objects by id, for as long as the body runs."""
        arguments = ("cat-file", "--batch-command", "--buffer")
        async with self._process(arguments, folder, limits, None, SecretFiles()) as process:
            try:
                async with TimeLimit(limits.seconds):
                    try:
                        yield ObjectReader(process)
                    except (asyncio.IncompleteReadError, ConnectionError):
                        check_ending(await process.wait())
                        raise CutOff from None
            except TimeoutError:
                raise TimedOut from None

    @asynccontextmanager
    async def _process(
        self,
        arguments: Sequence[str],
        folder: Path,
        limits: CommandLimits,
        route: Route | None,
        secrets: SecretFiles,
    ) -> AsyncIterator[RunningProcess]:
        """A started call. However the body ends, the call is over afterwards; if it failed, its group is killed."""
        try:
            process = await start_program(
                (self._program, *arguments),
                folder=folder,
                environment=_environment(self._program, folder, route, secrets),
                talks=arguments[:1] == ("cat-file",),
            )
        except OSError as error:
            reason = error.strerror or repr(error)
            raise Shortage(f"git cannot be started at the moment: {reason}.", host=MACHINE) from error
        try:
            _limit_resources(process.pid, limits)
            yield process
        finally:
            await process.end()


def find_git() -> str:
    """The path of git; raises Unsupported if there is none, or it is too old."""
    found = shutil.which("git")
    if found is None:
        raise Unsupported(
            "The git command is not installed, so repositories cannot be fetched; install git 2.37 or newer."
        )
    check_git(found)
    return found


@cache
def check_git(program: str) -> str:
    """Its version; raises Unsupported if it is too old for the hardening. Cached."""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise Unsupported(f"The git command {program} does not work: {error}.") from error
    said = done.stdout.decode("utf-8", "replace").strip()
    version = said.removeprefix("git version ").partition(" ")[0]
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < OLDEST_GIT:
        raise Unsupported(
            f"{program} is git {version or 'of an unknown version'}, and repositories are fetched with options that "
            "came later; install git 2.37 or newer."
        )
    return version


def make_repository(folder: Path) -> None:
    """Make an empty bare repository, as `git init` would, without templates or a child process."""
    (folder / "objects" / "pack").mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/none\n")
    write_config(folder)


def write_config(folder: Path) -> None:
    """Overwrite the repository's configuration with our own."""
    (folder / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder; files that vanish meanwhile count zero."""
    total = 0
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if entry.is_dir(follow_symlinks=False):
                    total += size_of(Path(entry.path))
                else:
                    total += entry.stat(follow_symlinks=False).st_size
    return total


def _environment(program: str, folder: Path, route: Route | None, secrets: SecretFiles) -> dict[str, str]:
    config = {**CONFIG, **secrets.config}
    if route is not None:
        config[f"protocol.{route.protocol}.allow"] = "always"
        if route.protocol == "file":
            # The operator named this mirror, so the owner of its files does not matter.
            config["safe.directory"] = "*"
        if route.pin and route.protocol != "ssh":
            config["http.curloptResolve"] = route.pin
    pairs = {
        f"GIT_CONFIG_{part}_{number}": text
        for number, pair in enumerate(config.items())
        for part, text in zip(("KEY", "VALUE"), pair, strict=True)
    }
    home = str(folder)
    return {
        "PATH": f"{Path(program).parent}{os.pathsep}{os.defpath}",
        "HOME": home,
        "XDG_CONFIG_HOME": home,
        "GIT_DIR": home,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "false",
        "SSH_ASKPASS": "false",
        "GIT_SSH_COMMAND": secrets.ssh_command,
        "GIT_SSH_VARIANT": "ssh",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "LC_ALL": "C",
        "GIT_CONFIG_COUNT": str(len(config)),
        **pairs,
    }


def _limit_resources(pid: int, limits: CommandLimits) -> None:
    """Set kernel limits, which git's children inherit; other systems rely on the watch alone."""
    seconds = max(1, int(limits.seconds * CPU_SHARE))
    # One more than the limit: a file of exactly that size is still fine. The soft CPU limit comes first, because its
    # signal (SIGXCPU) is unambiguous.
    for kind, soft, hard in (
        (resource.RLIMIT_FSIZE, limits.disk_bytes + 1, limits.disk_bytes + 1),
        (resource.RLIMIT_AS, MOST_MEMORY, MOST_MEMORY),
        (resource.RLIMIT_CPU, seconds, seconds + 1),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        limit_resource(kind, soft, hard, pid=pid)


def check_ending(code: int) -> None:
    """Raise Shortage if this exit code means a limit of the machine rather than one that we set."""
    if code == -signal.SIGKILL:
        raise Shortage("git was killed, as when memory is short.", host=MACHINE)
    if not has_memory_for(MOST_MEMORY) and code != -signal.SIGXCPU:
        raise lack("memory")


@asynccontextmanager
async def _watch_size(folder: Path, limits: CommandLimits, route: Route | None) -> AsyncIterator[None]:
    """End the body with LimitExceeded as soon as the repository on disk is too large."""
    if route is None:
        yield
        return
    body = asyncio.current_task()
    over = False

    async def look() -> None:
        nonlocal over
        while body is not None:
            await asyncio.sleep(LOOK_EVERY_S)
            if await asyncio.to_thread(size_of, folder / "objects") > limits.disk_bytes:
                over = True
                body.cancel()
                return

    watch = asyncio.create_task(look())
    try:
        yield
    except asyncio.CancelledError:
        if not over or (body is not None and body.uncancel()):
            raise
        raise too_large(limits) from None
    finally:
        watch.cancel()


def too_large(limits: CommandLimits) -> LimitExceeded:
    """The error for a repository that is too large to fetch."""
    most = limits.disk_bytes // (1024 * 1024)
    return LimitExceeded(
        f"The repository is larger than the {most} MiB that are fetched; move the skill into a smaller one.",
        limit="fetch_bytes",
        allowed=limits.disk_bytes,
    )
