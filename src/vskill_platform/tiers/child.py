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
from vskill_platform.machine.child_side import frame, limit_resource, receive
from vskill_platform.tiers.wire import ChildReady, Setup
from vskill_scan.engine import Engine
from vskill_scan.rules.indicators import with_indicators
from vskill_scan.rules.ruleset import bundled_rules

#: The engine ends a scan at its budget; the system ends the process this much later.
GRACE_S = 1


def main(descriptor: int) -> None:
    # The last one: it is not in the foreground of its terminal, to which it tells nevertheless what breaks it.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGTTOU):
        signal.signal(number, signal.SIG_IGN)
    with socket.socket(fileno=descriptor) as connection:
        first = receive(connection)
        if first is None:
            return
        setup = msgspec.msgpack.decode(first, type=Setup)
        limit_resource(resource.RLIMIT_CORE, 0, 0)
        limit_resource(resource.RLIMIT_AS, setup.memory_bytes)
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
        # From now on; the system counts the whole life of the process, in whole seconds.
        until = math.ceil(time.process_time() + setup.limits.cpu_s) + GRACE_S
        limit_resource(resource.RLIMIT_CPU, until)
        report = engine.scan(files)
        connection.sendall(frame(report))
        if report.status is ScanStatus.ERROR:
            # What went wrong may have left something behind; the pool starts a fresh one.
            return


def imported(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


if __name__ == "__main__":
    main(int(sys.argv[1]))
