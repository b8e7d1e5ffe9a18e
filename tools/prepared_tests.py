"""`python -m tools.prepared_tests`: writes what pytest makes of the tests' assertions, with every core.

After a fresh clone each process of pytest would do it for itself, all at once: ten seconds of a core in each. There is
no public way to it; a test tells where a release of pytest needs another one.
"""

import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from _pytest.assertion import rewrite
from _pytest.config import get_config

from tools.files import ROOT


def main() -> None:
    files = sorted(
        path for pattern in ("test_*.py", "conftest.py") for path in (ROOT / "tests").rglob(pattern)
    )
    cores = os.cpu_count() or 1
    with ProcessPoolExecutor(cores) as pool:
        list(pool.map(prepare, (files[first::cores] for first in range(cores))))


def prepare(files: list[Path]) -> None:
    """Each file as pytest's import would leave it beside the compiled ones."""
    config = get_config()
    config.parse(["-p", "no:cacheprovider", "--noconftest"])
    state = config.stash[rewrite.assertstate_key]
    for file in files:
        folder = rewrite.get_cache_dir(file)
        folder.mkdir(parents=True, exist_ok=True)
        compiled = folder / f"{file.stem}{rewrite.PYC_TAIL}"
        if rewrite._read_pyc(file, compiled) is None:  # noqa: SLF001
            source_hash, code = rewrite._rewrite_test(file, config)  # noqa: SLF001
            rewrite._write_pyc(state, code, source_hash, compiled)  # noqa: SLF001


if __name__ == "__main__":
    main()
