"""A process in a network namespace of its own, as a machine of its own has a network: it reaches itself and the servers
that a test lets through, and nobody else. `python -m tests.support.own_network FOLDER OUT,… IN COMMAND…` becomes the
command. A connection to a port of OUT comes out where the test serves `FOLDER/PORT`, and one to `FOLDER/NAME` of an IN
that is `NAME:PORT` comes in at that port (`-` for none).

It needs Linux, and root or the right to make user namespaces.
"""

import asyncio
import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

_NEW_USERS, _NEW_NETWORK = 0x10000000, 0x40000000
_SET_FLAGS, _IS_UP = 0x8914, 1
_END_WITH_PARENT = 1
_LIBC = ctypes.CDLL(None, use_errno=True)

Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


@asynccontextmanager
async def let_through(folder: Path, ports: Iterable[int]) -> AsyncIterator[None]:
    """What processes send to these ports of theirs arrives at those of this machine."""
    relays: set[asyncio.Task[None]] = set()

    def accept(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relays.add(asyncio.ensure_future(_relay(_to_port(port), reader, writer)))

    servers = [await asyncio.start_unix_server(partial(accept, port), folder / str(port)) for port in ports]
    try:
        yield
    finally:
        for server in servers:
            server.close()
        for relay in relays:
            relay.cancel()
        await asyncio.gather(*relays, return_exceptions=True)
        # Transports close a moment after they were told to.
        await asyncio.sleep(0)


def _to_port(port: int) -> Connect:
    return partial(asyncio.open_connection, "127.0.0.1", port)


async def _relay(connect: Connect, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        there, back = await connect()
    except OSError:
        writer.close()
        return
    await asyncio.gather(_pump(reader, back), _pump(there, writer))


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        with contextlib.suppress(OSError):
            while data := await source.read(65_536):
                sink.write(data)
                await sink.drain()
        sink.close()
    except asyncio.CancelledError:
        sink.transport.abort()
        raise


async def _relay_for_ever(folder: Path, out: Iterable[int], name: str, port: str) -> None:
    for one in out:
        relayed = partial(_relay, partial(asyncio.open_unix_connection, folder / str(one)))
        await asyncio.start_server(relayed, "127.0.0.1", one)
    if port:
        await asyncio.start_unix_server(partial(_relay, _to_port(int(port))), folder / name)
    await asyncio.Event().wait()


def _leave_the_network() -> None:
    user, group = os.getuid(), os.getgid()
    if _LIBC.unshare(_NEW_NETWORK | (_NEW_USERS if user else 0)):
        number = ctypes.get_errno()
        raise OSError(number, f"no network namespace can be made: {os.strerror(number)}")
    if user:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket() as asked:
        fcntl.ioctl(asked, _SET_FLAGS, struct.pack("16sH14x", b"lo", _IS_UP))


def main() -> None:
    folder, out, into, *command = sys.argv[1:]
    _leave_the_network()
    if not os.fork():
        _LIBC.prctl(_END_WITH_PARENT, signal.SIGKILL)
        name, _, port = into.partition(":")
        asyncio.run(_relay_for_ever(Path(folder), map(int, out.split(",")), name, port))
    os.execv(sys.executable, [sys.executable, *command])


if __name__ == "__main__":
    main()
