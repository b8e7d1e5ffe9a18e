"""A process of the scanner's pool: limits itself, says that it is ready, then answers one scan after the other until
its socket is closed. Started as `python -m vskill_platform.tiers.child FD`.

It ignores the signals that stop a server: the server ends it by closing the socket, after the running scan.
"""

import contextlib
import gc
import importlib
import math
import resource
import signal
import socket
import sys
import time
from typing import Any

import msgspec

from vskill_core.content import SkillFile
from vskill_core.findings import ScanStatus
from vskill_platform.tiers.wire import HEADER, MOST_BYTES, ChildReady, Setup, frame
from vskill_scan.engine import Engine
from vskill_scan.rules.indicators import with_indicators
from vskill_scan.rules.ruleset import bundled_rules

#: The engine ends a scan at its budget; the system ends the process this much later.
GRACE_S = 1


def main(descriptor: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with socket.socket(fileno=descriptor) as connection:
        first = receive(connection)
        if first is None:
            return
        setup = msgspec.msgpack.decode(first, type=Setup)
        limit_memory(setup.memory_bytes)
        engine, compiled = engine_of(setup)
        # The rules stay as long as the process: looking through them for garbage again and again takes time.
        gc.freeze()
        connection.sendall(frame(ChildReady(engine.version, compiled)))
        serve(connection, engine, setup)


def engine_of(setup: Setup) -> tuple[Engine, dict[str, bytes] | None]:
    """The engine, and its compiled patterns where those that were given are missing or cannot be used."""
    rules = with_indicators(bundled_rules(), setup.indicators)
    given = (rules, imported(setup.check_manifest), setup.known_bad_digests, setup.limits)
    if setup.compiled is not None:
        with contextlib.suppress(Exception):
            return Engine(*given, setup.compiled), None
    engine = Engine(*given)
    return engine, engine.matcher.serialised()


def serve(connection: socket.socket, engine: Engine, setup: Setup) -> None:
    while (message := receive(connection)) is not None:
        files = msgspec.msgpack.decode(message, type=tuple[SkillFile, ...])
        limit_processor(setup.limits.cpu_s)
        report = engine.scan(files)
        connection.sendall(frame(report))
        if report.status is ScanStatus.ERROR:
            # What went wrong may have left something behind; the pool starts a fresh one.
            return


def receive(connection: socket.socket) -> bytes | None:
    """One message; None at the end."""
    header = _exactly(connection, HEADER.size)
    if header is None:
        return None
    (size,) = HEADER.unpack(header)
    if size > MOST_BYTES:
        return None
    return _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(min(size - len(data), 1 << 20))
        if not part:
            return None
        data += part
    return bytes(data)


def limit_memory(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(
        resource.RLIMIT_AS, (size if hard == resource.RLIM_INFINITY else min(size, hard), hard)
    )


def limit_processor(seconds: float) -> None:
    """From now on; the system counts the whole life of the process, in whole seconds."""
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    until = math.ceil(time.process_time() + seconds) + GRACE_S
    if hard == resource.RLIM_INFINITY or until < hard:
        resource.setrlimit(resource.RLIMIT_CPU, (until, hard))


def imported(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


if __name__ == "__main__":
    main(int(sys.argv[1]))
