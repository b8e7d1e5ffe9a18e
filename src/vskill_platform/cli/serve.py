"""The roles of the executable: `serve` runs everything in one process; `worker` and `schedule` run alone."""

import asyncio
import socket
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import click
import msgspec

if TYPE_CHECKING:
    from vskill_platform.env import Env
    from vskill_platform.settings import Settings


class Roles(msgspec.Struct, frozen=True):
    """What one process does."""

    web: bool = False
    work: bool = False
    schedule: bool = False


@click.command()
@click.option("--host", help="The address to listen on, instead of VSKILL_HOST.")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="The port, instead of VSKILL_PORT; 0 takes a free one."
)
@click.option("--web-only", is_flag=True, help="Neither work the queue nor run the schedule.")
@click.option("--no-workers", is_flag=True, help="Do not work the queue.")
def serve(*, host: str | None, port: int | None, web_only: bool, no_workers: bool) -> None:
    """Run the web side, the workers and the schedule in this process; Ctrl-C stops it."""
    roles = Roles(web=True, work=not (web_only or no_workers), schedule=not web_only)
    _run_roles(roles, host, port)


@click.command()
def worker() -> None:
    """Work the queue, and nothing else; Ctrl-C stops it."""
    _run_roles(Roles(work=True))


@click.command()
def schedule() -> None:
    """Run the scheduled jobs, and nothing else; Ctrl-C stops it."""
    _run_roles(Roles(schedule=True))


def _run_roles(roles: Roles, host: str | None = None, port: int | None = None) -> None:
    from vskill_platform.cli.process import check_shared, run_async, tune_process
    from vskill_platform.settings import process_settings

    settings = process_settings()
    settings = msgspec.structs.replace(
        settings,
        host=settings.host if host is None else host,
        port=settings.port if port is None else port,
    )
    if not (roles.web and roles.work):
        check_shared(settings)
    tune_process()
    run_async(_until_stopped(settings, roles))


async def _until_stopped(settings: "Settings", roles: Roles) -> None:
    """Open, announce, run every role until a signal or a role's own end, then close in reverse order."""
    from vskill_platform.bootstrap import env_for, report_start
    from vskill_platform.cli.process import stop_on_signals
    from vskill_platform.observability import configure_logging
    from vskill_platform.web.server import bind

    log = configure_logging(settings)
    with ExitStack() as stack:
        listener = stack.enter_context(closing(bind(settings))) if roles.web else None
        stop = stack.enter_context(stop_on_signals())
        async with env_for(settings) as env:
            report_start(env)
            _announce(settings, roles, listener)
            async with asyncio.TaskGroup() as group:
                for name, role in _running(env, roles, listener, stop):
                    group.create_task(_ending_all(role, stop), name=name)
                await stop.wait()
                log.info("stopping", grace_ms=settings.shutdown_grace_ms)
    log.info("stopped")


def _running(
    env: "Env", roles: Roles, listener: socket.socket | None, stop: asyncio.Event
) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
    from vskill_platform.queue.consumer import run_consumer
    from vskill_platform.queue.schedule import run_schedule
    from vskill_platform.web.app import create_app
    from vskill_platform.web.server import serve as serve_web

    if listener is not None:
        yield "web", serve_web(create_app(env), env.settings, listener, stop)
    if roles.work:
        yield "worker", run_consumer(env, stop)
    if roles.schedule:
        yield "schedule", run_schedule(env, stop)


async def _ending_all(role: Coroutine[Any, Any, None], stop: asyncio.Event) -> None:
    """A role that ends, for whatever reason, ends the process: half a server is worse than a restart."""
    try:
        await role
    finally:
        stop.set()


def _announce(settings: "Settings", roles: Roles, listener: socket.socket | None) -> None:
    """Where to look, for the person who started it."""
    from rich.panel import Panel
    from rich.table import Table

    from vskill_platform.cli.output import console, plain

    lines = Table.grid(padding=(0, 2))
    for name, value in _places(settings, roles, listener):
        lines.add_row(plain(name), plain(value))
    console().print(Panel(lines, title="vskill-platform is up", subtitle="Ctrl-C stops it", expand=False))


def _places(settings: "Settings", roles: Roles, listener: socket.socket | None) -> Iterator[tuple[str, str]]:
    from vskill_platform.web.server import address_of

    if listener is not None:
        address = address_of(listener)
        yield "Address", address
        yield "Is it up?", f"{address}/healthz"
        yield "Is anything stuck?", f"{address}/api/v1/queue/health"
    yield "Runs", ", ".join(name for name in Roles.__struct_fields__ if getattr(roles, name))
    yield "Records", settings.store
    yield "Content", settings.blobs
