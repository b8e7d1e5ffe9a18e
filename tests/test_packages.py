"""What core, client and scanner know: the core only itself, client and scanner only themselves and the core, so that
each can be taken without the registry; and which packages of other people they need."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tools.files import HOMES, ROOT, module_name

#: What each may know beside itself and what Python brings. httpcore2 comes with httpx2.
KNOWN = {
    "vskill_core": {"cryptography", "msgspec"},
    "vskill_client": {"vskill_core", "click", "cryptography", "httpcore2", "httpx2", "msgspec"},
    "vskill_scan": {"vskill_core", "click", "msgspec", "re2", "rich", "yaml", "yara_x"},
}
MOST_LINES = {"vskill_core": 3_100, "vskill_client": 3_900}


def modules_of(package: str) -> dict[str, str]:
    """The texts of a package's modules, by their names."""
    (folder,) = [ROOT / home / package for home in HOMES if (ROOT / home / package).is_dir()]
    return {module_name(path.relative_to(ROOT).as_posix()): path.read_text() for path in folder.rglob("*.py")}


def imported(text: str) -> Iterator[str]:
    """The packages that a module imports, at its top or within a function; not what Python brings."""
    for node in ast.walk(ast.parse(text)):
        wanted: list[str] = []
        if isinstance(node, ast.Import):
            wanted = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            wanted = [str(node.module)]
        yield from {one.partition(".")[0] for one in wanted} - sys.stdlib_module_names


@pytest.mark.parametrize("package", KNOWN)
def test_a_package_knows_only_itself_and_what_it_may_know(package):
    modules = modules_of(package)
    assert len(modules) > 10
    known = KNOWN[package] | {package}
    stray = {
        f"{name} -> {one}" for name, text in modules.items() for one in imported(text) if one not in known
    }
    assert stray == set()


@pytest.mark.parametrize("package", MOST_LINES)
def test_what_everybody_installs_is_small(package):
    assert sum(len(text.splitlines()) for text in modules_of(package).values()) <= MOST_LINES[package]


def test_the_clients_help_loads_nothing_of_the_registry_and_nothing_heavy():
    """`git-credential` runs it for every fetch, and people wait for it."""
    code = (
        "import sys\nsys.argv[1:] = ['--help']\nfrom vskill_client.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    print(*sys.modules, file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / home) for home in HOMES)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    loaded = done.stderr.split()
    assert done.stdout.startswith("Usage: vskill-client ")
    assert not {
        "asyncio",
        "vskill_platform",
        "vskill_scan",
        "httpx2",
        "cryptography",
        "rich",
        "re2",
        "yaml",
    }.intersection(loaded)
