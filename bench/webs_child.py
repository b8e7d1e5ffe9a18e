"""A store of published skills with their content, made by the sources of the commit on the module path. Prints where it
is and what it holds."""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

#: What a commit calls the module that knows the skills.
NAMES = ("bench.catalogue", "bench.web_store")


def main(folder: Path, count: int) -> None:
    shelf: Any = next(importlib.import_module(name) for name in NAMES if importlib.util.find_spec(name))
    scale: Any = importlib.import_module("bench.scale")
    workshop = importlib.import_module("bench.workshop").Workshop(folder, scale.FULL, lambda _: None)
    store = shelf.filled(workshop, count)
    workshop.run(_keep_content(shelf, store, folder))
    names = shelf.names_of(count) if hasattr(shelf, "names_of") else shelf.asked(count)[0]
    sys.stdout.write(json.dumps({"store": str(store), "names": names}))


async def _keep_content(shelf: Any, store: Path, folder: Path) -> None:
    settings: Any = importlib.import_module("vskill_platform.settings")
    bootstrap: Any = importlib.import_module("vskill_platform.bootstrap")
    places = {"data_dir": str(folder), "store": f"sqlite:{store}", "blobs": f"files:{folder / 'blobs'}"}
    async with bootstrap.env_for(settings.Settings(**places)) as env:
        await env.blobs.put(shelf.digest_of_files(shelf.CONTENT), shelf.pack(shelf.CONTENT))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
