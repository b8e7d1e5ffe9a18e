"""Programs beside us: started quickly, read within limits, gone at the end with their pipes."""

import asyncio
import errno
import gc
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tests.support.lifetimes import guard_runner
from tests.support.patience import NEVER_MS, PATIENCE_S, wait_until
from vskill_platform.machine.child_processes import (
    EndedProgram,
    ProcessDied,
    RunningProcess,
    describe_ending,
    start_own,
    start_program,
)

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture(params=LOOPS)
def play(request: pytest.FixtureRequest) -> Callable[[Callable[[], Awaitable[Any]]], Any]:
    """Runs a scene on an event loop of each kind, within the patience of a test."""
    guard_runner()

    def run(scene: Callable[[], Awaitable[Any]]) -> Any:
        async def bounded() -> Any:
            async with asyncio.timeout(PATIENCE_S):
                return await scene()

        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            return runner.run(bounded())

    return run


async def run_shell(script: str, out_bytes: int = 1_000_000) -> EndedProgram:
    program = await start_program(("sh", "-c", script))
    try:
        return await program.read_to_end(out_bytes)
    finally:
        await program.end()


def test_it_says_what_it_printed_and_how_it_ended(play):
    async def scene() -> list[EndedProgram]:
        return [await run_shell(script) for script in ("echo a; echo b >&2; exit 3", "kill -9 $$")]

    assert play(scene) == [EndedProgram(3, b"a\n", b"b\n"), EndedProgram(-signal.SIGKILL)]


def test_one_that_prints_too_much_is_cut_and_killed(play):
    async def scene() -> EndedProgram:
        return await run_shell("exec yes", out_bytes=3)

    assert play(scene) == EndedProgram(out=b"y\ny", cut=True)


@pytest.mark.parametrize(("printed", "cut"), [(4, False), (5, True)])
def test_output_up_to_the_limit_is_read_whole(play, printed, cut):
    async def scene() -> EndedProgram:
        return await run_shell(f"printf {'x' * printed}", out_bytes=4)

    assert play(scene) == EndedProgram(out=b"xxxx", cut=cut)


@pytest.mark.parametrize(("code", "is_left"), [(0, True), (1, False)])
def test_what_a_program_leaves_in_its_group_is_killed_unless_it_ended_well(play, code, is_left):
    async def scene() -> int:
        program = await start_program(("sh", "-c", f"sleep 600 >&- 2>&- & echo $!; exit {code}"))
        left = int(await program.reader.readline())
        await program.wait()
        assert await program.end() == code
        return left

    left = play(scene)
    if is_left:
        # The group was to be killed before the program's end was told.
        assert _runs(left)
        os.kill(left, signal.SIGKILL)
    wait_until(lambda: not _runs(left), "what was killed still runs")


def _runs(pid: int) -> bool:
    """Whether there is such a process that has not ended, even if nobody has waited for it yet."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.parametrize("quiet", [False, True])
def test_a_module_of_ours_has_our_standard_error_unless_it_is_to_be_quiet(play, capfd, quiet):
    async def scene() -> None:
        # It takes the number of its socket for a file, and complains that there is none.
        program = await start_own("json.tool", quiet=quiet)
        await program.wait()
        await program.end()

    play(scene)
    assert (capfd.readouterr().err == "") is quiet


def test_one_that_has_ended_cannot_be_asked(play):
    async def scene() -> None:
        program = await start_own("json.tool", quiet=True)
        await program.wait()
        try:
            with pytest.raises(ProcessDied):
                await program.ask("x" * 1_000_000)
        finally:
            await program.end()

    play(scene)


@pytest.mark.parametrize(
    ("code", "words"),
    [(0, "exit code 0"), (3, "exit code 3"), (-1, "SIGHUP"), (-9, "SIGKILL"), (-200, "signal 200")],
)
def test_an_ending_is_told_in_words(code, words):
    assert describe_ending(code) == words


def test_one_that_talks_is_written_to_and_its_errors_go_nowhere(play):
    async def scene() -> tuple[bytes, bytes]:
        program = await start_program(("sh", "-c", "echo no >&2; exec cat"), talks=True)
        program.writer.write(b"x" * 300_000 + b"\n")
        line, _ = await asyncio.gather(program.reader.readexactly(300_001), program.writer.drain())
        said = await program.errors.read()
        await program.end()
        return line[-3:], said

    assert play(scene) == (b"xx\n", b"")


def test_what_cannot_be_started_is_an_error_of_the_system(play, tmp_path):
    async def scene() -> RunningProcess:
        return await start_program((str(tmp_path / "nothing"),))

    with pytest.raises(FileNotFoundError):
        play(scene)


def test_it_has_the_folder_and_the_environment_that_it_was_given_and_a_session_of_its_own(play, tmp_path):
    async def scene() -> tuple[bytes, bool]:
        program = await start_program(
            ("/bin/sh", "-c", "pwd; echo $A; sleep 600"), folder=tmp_path, environment={"A": "1"}
        )
        said = await program.reader.readline() + await program.reader.readline()
        alone = os.getsid(program.pid) == program.pid
        await program.end()
        assert program.returncode == -signal.SIGKILL
        return said, alone

    assert play(scene) == (f"{tmp_path}\n1\n".encode(), True)


def test_no_descriptor_is_left_of_many(play):
    def descriptors() -> int:
        return len([*Path("/proc/self/fd").iterdir()])

    async def scene() -> None:
        await run_shell("exit 0")
        await asyncio.sleep(0.05)
        before = descriptors()
        await asyncio.gather(*(run_shell("echo a") for _ in range(20)))
        # What closes a pipe runs in the loop's next rounds.
        while descriptors() > before:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)

    play(scene)


def test_a_start_that_is_cancelled_at_any_step_leaves_no_pipe_and_no_process(play):
    """A pipe that is left open is a warning at whatever runs when it is collected."""

    async def scene() -> list[int | None]:
        ended: list[int | None] = []
        for steps in range(8):
            starting = asyncio.create_task(start_program(("sleep", "600")))
            for _ in range(steps):
                await asyncio.sleep(0)
            starting.cancel()
            try:
                program = await starting
            except asyncio.CancelledError:
                gc.collect()
                continue
            await program.end()
            ended.append(program.returncode)
        return ended

    assert set(play(scene)) <= {-signal.SIGKILL}


def test_one_that_is_ended_while_it_prints_is_over_at_once_however_full_its_pipes_are(play):
    """The cause of a bomb that hung under load: pipes that nobody reads any more."""

    async def scene() -> int | None:
        program = await start_program(("sh", "-c", "yes >&2 & exec yes"))
        await program.reader.readline()
        await program.end(close_s=NEVER_MS / 1000)
        return program.returncode

    assert play(scene) == -signal.SIGKILL


def test_a_process_that_left_the_group_with_a_pipe_is_not_waited_for(play):
    async def scene() -> int | None:
        program = await start_program(("sh", "-c", "setsid sh -c 'echo $$; exec sleep 600' & wait"))
        escaped = int(await program.reader.readline())
        try:
            await program.end(close_s=0.2)
        finally:
            os.kill(escaped, signal.SIGKILL)
        return program.returncode

    assert play(scene) == -signal.SIGKILL


def test_where_the_kernel_gives_no_descriptor_of_a_process_its_end_is_waited_for_in_a_thread(
    play, monkeypatch
):
    def forbidden(_pid: int) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", forbidden)

    async def scene() -> tuple[EndedProgram, int | None]:
        program = await start_program(("sleep", "600"))
        await program.end()
        return await run_shell("echo a; exit 3"), program.returncode

    assert play(scene) == (EndedProgram(3, b"a\n"), -signal.SIGKILL)


@pytest.mark.parametrize(
    ("kind", "grace_s", "code"), [("ends", PATIENCE_S, 3), ("hangs", 0.1, None)], ids=["ends", "hangs"]
)
def test_a_module_of_ours_has_its_grace_in_a_group_of_its_own_and_in_our_session(
    play, monkeypatch, kind, grace_s, code
):
    monkeypatch.setenv("ODD", kind)

    async def scene() -> tuple[int, int, int | None, int | None]:
        process = await start_own("tests.cli.odd_worker")
        group, session = os.getpgid(process.pid) - process.pid, os.getsid(process.pid)
        return group, session, await process.end(grace_s=grace_s), process.returncode

    ended = -signal.SIGKILL if code is None else code
    assert play(scene) == (0, os.getsid(0), code, ended)
