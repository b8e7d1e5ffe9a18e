"""The commands of `audit`."""

import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import click

from vskill_client.destination import Caller, in_thread, run_with_caller
from vskill_core.errors import InvalidInput
from vskill_platform.actions.operation import audit
from vskill_platform.actions.wire import encode
from vskill_platform.cli.action_commands import command_for, table

#: How often new entries are asked for.
EVERY_S = 2.0
#: Of syslog: the facility "log audit", the severity "informational".
PRIORITY = 13 * 8 + 6

_ENTRIES = table(
    "{#items:entry/entries}",
    "items",
    *(("at (UTC)", "at"), ("by", "who"), ("what", "action"), "target", "reason"),
)


@click.command()
@click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file that keeps where it stands, so that the next start goes on there.",
)
@click.option("--follow/--no-follow", default=True, help="Wait for new entries, or end after the last one.")
@click.option("--syslog", default="", help="Send to tcp://HOST:PORT or udp://HOST:PORT (RFC 5424) instead.")
def tail(*, state: Path | None, follow: bool, syslog: str) -> None:
    """Print every entry of the audit as a line of JSON, the oldest first, and go on as they come.

    Each entry is written before the place is kept, so none is lost however this ends; one that comes again has the
    same id. Run it as a service to keep the audit in a file or a log system of your own.
    """
    import asyncio

    write = _syslog_writer(syslog) if syslog else _print_lines

    kept = state.read_text("utf-8").strip() if state is not None and state.exists() else ""

    async def work(caller: Caller) -> None:
        after = kept
        while True:
            found = await caller.call(audit.FOLLOW_AUDIT, audit.FollowAudit(after=after))
            if found.items:
                await in_thread(write, found.items)
            if state is not None and found.after != after:
                await in_thread(_keep, state, found.after)
            is_end, after = not found.items, found.after
            if is_end and not follow:
                return
            if is_end:
                await asyncio.sleep(EVERY_S)

    run_with_caller(work)


def _print_lines(items: tuple[audit.AuditView, ...]) -> None:
    for one in items:
        click.echo(encode(one))
    sys.stdout.flush()
    # A terminal or a pipe has no disk.
    with suppress(OSError):
        os.fsync(sys.stdout.fileno())


def _keep(state: Path, after: str) -> None:
    """Replace the file at once: it is always whole."""
    fresh = state.with_name(f"{state.name}.new")
    fresh.write_text(f"{after}\n", "utf-8")
    fresh.replace(state)


def _syslog_writer(address: str) -> Callable[[tuple[audit.AuditView, ...]], None]:
    parts = urlsplit(address)
    if parts.scheme not in ("tcp", "udp") or not parts.hostname or not parts.port:
        fix = "write tcp://HOST:PORT or udp://HOST:PORT"
        raise InvalidInput(f"{address!r} is no address of a syslog server.", field="--syslog", fix=fix)
    server, is_stream = (parts.hostname, parts.port), parts.scheme == "tcp"
    here = socket.gethostname().encode("ascii", "replace").decode() or "-"

    def write(items: tuple[audit.AuditView, ...]) -> None:
        kind = socket.SOCK_STREAM if is_stream else socket.SOCK_DGRAM
        (family, _, _, _, place), *_ = socket.getaddrinfo(*server, type=kind)
        with socket.socket(family, kind) as connection:
            connection.settimeout(30)
            connection.connect(place)
            for one in items:
                text = f"<{PRIORITY}>1 {one.at} {here} vskill-platform - {one.id} - ".encode() + encode(one)
                # A stream tells by a number how long each message is (RFC 6587).
                connection.sendall(b"%d %s" % (len(text), text) if is_stream else text)

    return write


COMMANDS = (command_for(audit.READ_AUDIT, _ENTRIES), tail)
