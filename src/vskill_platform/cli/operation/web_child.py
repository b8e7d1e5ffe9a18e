"""One of several web processes of `serve --web N`: it accepts at the listener that all of them share."""

import asyncio
import math
import socket
import sys

import msgspec

from vskill_platform.bootstrap import env_for
from vskill_platform.cli.operation.supervised import heeding, run_child
from vskill_platform.cli.process import ending_all, stop_on_signals
from vskill_platform.settings import Settings
from vskill_platform.store.operation.workers import run_web_signs
from vskill_platform.store.people.refusals import run_refusals, write_counted
from vskill_platform.web.app import create_app
from vskill_platform.web.door.server import serve
from vskill_platform.web.streams.follower import Hub


class WebOrders(msgspec.Struct, frozen=True):
    """What `serve` says to each web process at its start, because its environment does not."""

    #: The listener's descriptor.
    listener: int
    #: How many processes answer.
    processes: int
    #: Whether a worker is beside them, which is part of being ready.
    works: bool
    host: str
    port: int
    rate_limits: str


def main(descriptor: str, servers_version: str, orders: str) -> int:
    """Until the server is gone, or a signal; the exit code."""
    given = msgspec.json.decode(orders, type=WebOrders)
    server = socket.socket(fileno=int(descriptor))
    return run_child(servers_version, lambda settings: _answer_for(server, given, settings))


async def _answer_for(server: socket.socket, orders: WebOrders, settings: Settings) -> None:
    settings = msgspec.structs.replace(
        settings,
        host=orders.host,
        port=orders.port,
        rate_limits=orders.rate_limits,
        max_streams_per_address=math.ceil(settings.max_streams_per_address / orders.processes),
    )
    listener, leave = socket.socket(fileno=orders.listener), asyncio.Event()
    with stop_on_signals() as stop:
        async with env_for(settings) as env, heeding(server, env.metrics, stop, leave) as parent:
            env.metrics.read_beside = parent.others
            hub = Hub(env)
            app = create_app(env, hub=hub, stop=stop, works=orders.works, processes=orders.processes)
            async with asyncio.TaskGroup() as group:
                answering = serve(app, settings, listener, stop, hub.close, metrics=env.metrics, leave=leave)
                for role in (answering, run_refusals(env, stop), run_web_signs(env, stop)):
                    group.create_task(ending_all(role, stop))
                parent.tell()
            # After the last answer.
            await write_counted(env)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
