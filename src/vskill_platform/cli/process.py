"""What roles and commands of this machine have in common: the event loop, signals, the environment of the settings."""

import asyncio
import os
import resource
import signal
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, TypeVar

import click
import msgspec

from vskill_client.destination import Destination
from vskill_core.errors import InvalidInput, InvalidSettings
from vskill_platform.machine.child_side import limit_resource
from vskill_platform.settings import DEFAULT_STORE, Settings, has_own_store, process_settings

T = TypeVar("T")

#: The executable that people type.
PROGRAM = "vskill-platform"
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run_async(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end on uvloop where it is installed, on asyncio's own loop elsewhere."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    else:
        factory = new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main)


def keep_private() -> None:
    """Files that this process and its children create are for this account alone, existing ones stay as they are; and
    none of them leaves a core dump, which would hold every secret in use. Only for the beginning of our own process: a
    caller that runs a command in its own process keeps its umask."""
    os.umask(os.umask(0o077) | 0o077)
    # Not 0: with 1, Linux hands no dump to another program either.
    limit_resource(resource.RLIMIT_CORE, 1)


def refuse_elsewhere(registry: str, account: str | None) -> None:
    """Raise InvalidInput where the command line names a registry or an account that the command would not use."""
    if registry:
        fix = "leave out --registry and VSKILL_PLATFORM_REGISTRY, and run it on the server's machine"
        raise InvalidInput("This command works only on the server's machine.", field="--registry", fix=fix)
    if account is not None:
        raise InvalidInput("Only the operator can run this command.", field="--as", fix="leave out --as")


def _require_this_machine() -> None:
    """Raise InvalidInput where the command that runs is meant for a registry elsewhere, or for an account."""
    context = click.get_current_context(silent=True)
    destination = context.find_object(Destination) if context is not None else None
    if destination is not None:
        refuse_elsewhere(destination.registry, destination.account)


def run_in_env(work: Callable[[], Awaitable[T]], *, creates: bool = False) -> T:
    """Do the work of a command that only the operator of this machine has, in the environment of the settings."""
    _require_this_machine()
    return open_env_and_run(work, creates=creates)


def require_own_store() -> None:
    """Raise where a command would make a registry that nobody asked for, and find it empty."""
    if not has_own_store():
        message = f"There is no registry in this folder ({DEFAULT_STORE})."
        fix = (
            "sign in to one with 'vskill-platform login URL', name one with --registry URL, "
            "or start one here with 'vskill-platform serve'"
        )
        raise InvalidInput(message, field="--registry", fix=fix)


def open_env_and_run(work: Callable[[], Awaitable[T]], *, creates: bool = False) -> T:
    """Open the environment that the settings describe, and do a command's work in it. Only a command that `creates`
    may find no registry."""
    # Loaded before the loop runs: an import reads files.
    import vskill_platform.bootstrap  # noqa: F401

    if not creates:
        require_own_store()
    return run_async(_in_env(process_settings(), work))


async def _in_env(settings: Settings, work: Callable[[], Awaitable[T]]) -> T:
    from vskill_platform.bootstrap import env_for
    from vskill_platform.observing.logs import configure_logging
    from vskill_platform.worker_context import run_with_worker_env

    check_shared(settings)
    # A command prints its answer; only what went wrong is worth a log line beside it.
    quiet = "warning" if settings.log_level == "info" else settings.log_level
    configure_logging(msgspec.structs.replace(settings, log_level=quiet))
    async with env_for(settings) as env:
        return await run_with_worker_env(env, work)


def is_shared(settings: Settings) -> bool:
    """Whether another process sees the same records and content."""
    return "memory:" not in (settings.store, settings.blobs)


def check_shared(settings: Settings) -> None:
    """A command beside the server needs a store that both can see."""
    if settings.store == "memory:":
        raise InvalidSettings(
            "VSKILL_STORE is memory:, which no other process can see; set it to sqlite:PATH, or unset it.",
            setting="VSKILL_STORE",
        )


def shared_settings() -> Settings:
    settings = process_settings()
    check_shared(settings)
    return settings


@contextmanager
def stop_on_signals() -> Iterator[asyncio.Event]:
    """An event that SIGINT and SIGTERM set. A second signal does not wait for anything any more."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, _first_signal, loop, stop)
    try:
        yield stop
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)


@contextmanager
def replace_on_hangup() -> Iterator[asyncio.Event]:
    """An event that SIGHUP sets: processes are to be replaced by new ones."""
    again = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, again.set)
    try:
        yield again
    finally:
        loop.remove_signal_handler(signal.SIGHUP)


async def ending_all(role: Coroutine[Any, Any, None], stop: asyncio.Event) -> None:
    """A role that ends, for whatever reason, ends the process: half a server is worse than a restart."""
    try:
        await role
    finally:
        stop.set()


def _first_signal(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    # Not through the loop this time: a loop that hangs must not keep the process from ending.
    for number in STOP_SIGNALS:
        loop.remove_signal_handler(number)
        signal.signal(number, _exit_hard)
    stop.set()


def _exit_hard(number: int, _frame: FrameType | None) -> None:
    with suppress(OSError):
        os.write(2, b"second signal: exiting at once\n")
    os._exit(128 + number)
