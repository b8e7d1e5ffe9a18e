"""The roles of the executable: `serve` runs them all, its worker and schedule in a process of their own; `worker` and
`schedule` run alone."""

import asyncio
import socket
import sys
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import click
import msgspec

from vskill_client.output import plain
from vskill_core.errors import InvalidInput, PlatformError
from vskill_platform.cli import process
from vskill_platform.setting_values import shown_location
from vskill_platform.settings import Settings, keep_temporary_files_in, process_settings

if TYPE_CHECKING:
    from vskill_platform.worker_context import Env

#: Of what goes to a file or a pipe: wider than any line, so that nothing is folded.
PIPE_WIDTH = 100_000
#: Each takes some 70 MB.
MOST_WEB_PROCESSES = 64


class Roles(msgspec.Struct, frozen=True):
    """What a command runs."""

    #: How many web processes; one is this process itself.
    web: int = 0
    work: bool = False
    schedule: bool = False
    #: submit the bundled examples where the store is empty
    demo: bool = False


@click.command()
@click.option("--host", help="The address to listen on, instead of VSKILL_HOST.")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="The port, instead of VSKILL_PORT; 0 takes a free one."
)
@click.option(
    "--web",
    type=click.IntRange(1, MOST_WEB_PROCESSES),
    default=1,
    metavar="N",
    help="Answer by N web processes at one port; SIGHUP replaces them one after another.",
)
@click.option("--web-only", is_flag=True, help="Run only the web server.")
@click.option("--no-workers", is_flag=True, help="Do not process the queue.")
@click.option("--demo", is_flag=True, help="Submit the bundled examples if the store is empty.")
def serve(
    *, host: str | None, port: int | None, web: int, web_only: bool, no_workers: bool, demo: bool
) -> None:
    """Run web server, workers and schedule; Ctrl-C stops them.

    Workers and schedule run in a process of their own, which is started again when it ends. It has a lower priority
    so that pages do not wait for the work.
    """
    roles = Roles(web=web, work=not (web_only or no_workers), schedule=not web_only, demo=demo)
    _run_roles(roles, host, port)


@click.command()
def worker() -> None:
    """Process the queue, and nothing else; Ctrl-C stops it."""
    _run_roles(Roles(work=True))


@click.command()
def schedule() -> None:
    """Run the scheduled jobs, and nothing else; Ctrl-C stops it."""
    _run_roles(Roles(schedule=True))


def _run_roles(roles: Roles, host: str | None = None, port: int | None = None) -> None:
    settings = process_settings()
    settings = msgspec.structs.replace(
        settings,
        host=settings.host if host is None else host,
        port=settings.port if port is None else port,
        # Requests of somebody who tries the examples on this machine are not counted.
        rate_limits="remote" if roles.demo and settings.rate_limits == "on" else settings.rate_limits,
    )
    if not (roles.web and roles.work):
        process.check_shared(settings)
    if roles.web > 1 and not process.is_shared(settings):
        fix = "leave out --web, or keep records and content (VSKILL_STORE, VSKILL_BLOBS) outside of memory"
        raise InvalidInput(
            "Several web processes cannot see what one of them keeps in memory.", field="--web", fix=fix
        )
    if settings.store != "memory:":
        keep_temporary_files_in(Path(settings.data_dir) / "tmp")
    process.run_async(_until_stopped(settings, roles))


async def _until_stopped(settings: Settings, roles: Roles) -> None:
    """Open, announce, run every role until a signal or a role's own end, then close in reverse order."""
    from vskill_platform.bootstrap import env_for, report_start
    from vskill_platform.observing.logs import configure_logging
    from vskill_platform.store.people.refusals import write_counted
    from vskill_platform.web.door.server import bind

    log = configure_logging(settings)
    with ExitStack() as stack:
        place = _listens_at(settings, roles)
        listener = stack.enter_context(closing(bind(place))) if place is not None else None
        stop = stack.enter_context(process.stop_on_signals())
        again = stack.enter_context(process.replace_on_hangup()) if roles.web > 1 else asyncio.Event()
        async with env_for(settings) as env:
            report_start(env)
            await _note_release(env)
            await _announce(env, roles, listener)
            async with asyncio.TaskGroup() as group:
                for name, role in _running(env, roles, listener, stop, again):
                    group.create_task(process.ending_all(role, stop), name=name)
                if roles.demo:
                    group.create_task(_with_examples(env, stop), name="demo")
                await stop.wait()
                log.info("stopping", grace_ms=settings.shutdown_grace_ms)
            # After the last answer.
            await write_counted(env)
    log.info("stopped")


async def _note_release(env: "Env") -> None:
    """A note that cannot be written keeps nobody from working."""
    from vskill_platform.store.operation.releases import note_release

    try:
        await note_release(env.kv)
    except PlatformError as error:
        env.log.warning("the release that uses the store was not noted", reason=error.message)


def _listens_at(settings: Settings, roles: Roles) -> Settings | None:
    """Where this process listens: the web side at its port, another one for its metrics if a port is set."""
    if roles.web:
        return settings
    return msgspec.structs.replace(settings, port=settings.metrics_port) if settings.metrics_port else None


def _running(
    env: "Env", roles: Roles, listener: socket.socket | None, stop: asyncio.Event, again: asyncio.Event
) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
    from vskill_platform.cli.operation.role_process import RoleProcess
    from vskill_platform.cli.operation.web_processes import WebProcesses
    from vskill_platform.queue.consumer import run_consumer
    from vskill_platform.queue.schedule import run_schedule
    from vskill_platform.store.operation.workers import run_web_signs
    from vskill_platform.store.people.refusals import run_refusals
    from vskill_platform.web import operations
    from vskill_platform.web.app import create_app
    from vskill_platform.web.door.server import serve as serve_web
    from vskill_platform.web.streams.follower import Hub

    works, beside = roles.work, None
    if roles.web and roles.work and process.is_shared(env.settings):
        beside = RoleProcess(env.settings, env.log)
        env.metrics.read_beside = beside.counts
        yield "worker process", beside.run(stop)
        roles = Roles(web=roles.web)
    if roles.web > 1 and listener is not None:
        yield "web processes", WebProcesses(env, listener, roles.web, beside).run(stop, again)
    elif roles.web and listener is not None:
        hub = Hub(env)
        app = create_app(env, hub=hub, stop=stop, works=works)
        yield (
            "web",
            serve_web(app, env.settings, listener, stop, hub.close, metrics=env.metrics),
        )
        yield "refusals", run_refusals(env, stop)
        yield "signs of life", run_web_signs(env, stop)
    elif listener is not None:
        app = create_app(env, operations.OWN_PORT, stop=stop, works=works)
        yield "metrics", serve_web(app, env.settings, listener, stop, metrics=env.metrics)
    if roles.work:
        yield "worker", run_consumer(env, stop, tries_machine=True)
    if roles.schedule:
        yield "schedule", run_schedule(env, stop)


async def _with_examples(env: "Env", stop: asyncio.Event) -> None:
    """In the background: nobody waits for the examples, and a stop does not either."""
    from vskill_platform.installation.demo import load

    loading = asyncio.create_task(load(env))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({loading, stopping}, return_when=asyncio.FIRST_COMPLETED)
    for task in (loading, stopping):
        task.cancel()
    await asyncio.wait({loading, stopping})


async def _announce(env: "Env", roles: Roles, listener: socket.socket | None) -> None:
    """Where to look, for the person who started it; a full disk or a closed pipe does not end the process."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.table import Table

    from vskill_platform.observing.logs import SteadyStream

    # Asked before anything is announced: a store that is away by now ends the start, not a process that said it is up.
    link = await _first_admin_link(env, listener) if roles.web and listener is not None else None
    lines = Table.grid(padding=(0, 2))
    for name, value in _places(env.settings, roles, listener):
        lines.add_row(plain(name), plain(value))
    out = Console(
        file=cast("TextIO", SteadyStream(sys.stdout)),
        # Somebody may have started it without a standard output.
        width=None if sys.stdout is not None and sys.stdout.isatty() else PIPE_WIDTH,
        highlight=False,
    )
    out.print(Panel(lines, title="vskill-platform is up", subtitle="Ctrl-C stops it", expand=False))
    if link is not None:
        out.print(plain("Open this once to make the first admin account:"))
        # On a line of its own, so that it can be copied.
        out.print(plain(link), soft_wrap=True)


async def _first_admin_link(env: "Env", listener: socket.socket) -> str | None:
    """No default password exists: until somebody is admin, this link makes one, once."""
    from vskill_platform.store.people.setup import first_admin_link
    from vskill_platform.web.door.server import address_of

    return await first_admin_link(env, env.settings.public_url or address_of(listener))


def _places(settings: Settings, roles: Roles, listener: socket.socket | None) -> Iterator[tuple[str, str]]:
    from vskill_platform.web.door.server import address_of

    if listener is not None:
        address = address_of(listener)
        yield "Address", address
        yield "Is it up?", f"{address}/healthz"
        if roles.web:
            yield "Is anything stuck?", f"{address}/api/v1/queue/health"
        else:
            yield "Metrics", f"{address}/metrics"
    yield "Runs", ", ".join(name for name in Roles.__struct_fields__ if getattr(roles, name))
    yield "Records", shown_location(settings.store)
    yield "Content", settings.blobs
