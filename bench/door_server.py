"""`python -m bench.door_server STORE ours|bare`: the product's application over a filled store, behind our front door
or behind uvicorn as it comes, until its input is closed. It prints its port."""

import asyncio
import sys
from pathlib import Path

import uvicorn

from bench.catalogue import opened
from vskill_platform.cli.process import run_async
from vskill_platform.settings import Settings
from vskill_platform.web.app import create_app
from vskill_platform.web.door.server import bind, serve


async def main(store: Path, kind: str) -> None:
    stop = asyncio.Event()
    async with opened(store) as env:
        app = create_app(env)
        listener = bind(Settings(port=0))
        print(listener.getsockname()[1], flush=True)
        asyncio.get_running_loop().add_reader(sys.stdin, stop.set)
        if kind == "ours":
            await serve(app, env.settings, listener, stop, metrics=env.metrics)
            return
        config = uvicorn.Config(app, lifespan="off", ws="none", log_config=None, access_log=False)
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve([listener]))
        await stop.wait()
        server.should_exit = True
        await serving


if __name__ == "__main__":
    run_async(main(Path(sys.argv[1]), sys.argv[2]))
