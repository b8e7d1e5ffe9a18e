"""The commands of `audit`."""

import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit

import click

from vskill_client.destination import Caller, in_thread, run_with_caller
from vskill_core.errors import InvalidInput
from vskill_platform.actions.operation import audit
from vskill_platform.actions.wire import encode
from vskill_platform.cli.action_commands import command_for, table
from vskill_platform.domain.people.refusal import AuditOutcome

#: How often new entries are asked for.
EVERY_S = 2.0
#: Of syslog: the facility "log audit", the severities "informational" and "warning".
PRIORITIES = {AuditOutcome.DONE: 13 * 8 + 6, AuditOutcome.REFUSED: 13 * 8 + 4}

_ENTRIES = table(
    "{#items:entry/entries}",
    "items",
    *(("at (UTC)", "at"), ("by", "who"), ("what", "action"), "outcome", "target", "reason", "address"),
)


@click.command()
@click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file that keeps where it stands, so that the next start goes on there.",
)
@click.option("--follow/--no-follow", default=True, help="Wait for new entries, or end after the last one.")
@click.option(
    "--file",
    "output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Append to this file instead; one that was renamed is made again.",
)
@click.option(
    "--syslog",
    default="",
    help="Send to tcp://HOST:PORT, udp://HOST:PORT or unix:///dev/log (RFC 5424) instead.",
)
def tail(*, state: Path | None, follow: bool, output: Path | None, syslog: str) -> None:
    """Print every entry of the audit as a line of JSON, the oldest first, and go on as they come.

    Each entry is written before the place is kept, so none is lost however this ends; one that comes again has the
    same id. Run it as a service to keep the audit in a file or a log system of your own.
    """
    import asyncio

    if output is not None and syslog:
        raise InvalidInput("Entries go to one place.", field="--file", fix="leave out --file or --syslog")
    write = _syslog_writer(syslog) if syslog else partial(_append, output) if output else _print_lines

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


def _append(path: Path, items: tuple[audit.AuditView, ...]) -> None:
    """Opened each time, so that a rotated file is left alone. What a kill left of a line ends first."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":
                file.write(b"\n")
        file.write(b"".join(encode(one) + b"\n" for one in items))
        file.flush()
        os.fsync(file.fileno())


def _syslog_writer(address: str) -> Callable[[tuple[audit.AuditView, ...]], None]:
    parts, is_remote = urlsplit(address), False
    # A port that is no number, or too large.
    with suppress(ValueError):
        is_remote = parts.scheme in ("tcp", "udp") and bool(parts.hostname and parts.port)
    if not (is_remote or (parts.scheme == "unix" and parts.path and not parts.netloc)):
        fix = "write tcp://HOST:PORT, udp://HOST:PORT or unix:///dev/log"
        raise InvalidInput(f"{address!r} is no address of a syslog server.", field="--syslog", fix=fix)
    here = socket.gethostname().encode("ascii", "replace").decode() or "-"

    def write(items: tuple[audit.AuditView, ...]) -> None:
        with _connect(parts) as connection:
            for one in items:
                head = f"<{PRIORITIES[one.outcome]}>1 {one.at} {here} vskill-platform - {one.id} - "
                text = head.encode() + encode(one)
                # A stream tells by a number how long each message is (RFC 6587).
                is_stream = connection.type == socket.SOCK_STREAM
                connection.sendall(b"%d %s" % (len(text), text) if is_stream else text)

    return write


@contextmanager
def _connect(parts: SplitResult) -> Iterator[socket.socket]:
    family, kind, place = socket.AF_UNIX, socket.SOCK_DGRAM, cast("Any", parts.path)
    if parts.scheme != "unix":
        kind = socket.SOCK_STREAM if parts.scheme == "tcp" else socket.SOCK_DGRAM
        (family, _, _, _, place), *_ = socket.getaddrinfo(parts.hostname, parts.port, type=kind)
    with socket.socket(family, kind) as connection:
        connection.settimeout(30)
        connection.connect(place)
        yield connection


COMMANDS = (command_for(audit.READ_AUDIT, _ENTRIES), tail)
