"""What core, client and scanner know: the core only itself, client and scanner only themselves and the core, so that
each can be taken without the registry; and which packages of other people they need."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import vskill_platform

SOURCE = Path(vskill_platform.__file__).parent
CORE = {
    *(
        f"domain.{name}"
        for name in ("archives", "capability", "content", "errors", "form", "identity", "naming")
    ),
    *(f"domain.{name}" for name in ("plural", "release", "revocation_list", "scan", "state_words")),
    *(f"signing.{name}" for name in ("check", "dsse", "keys", "statement")),
    *("sources.archive", "sources.folder"),
}
GRAMMARS = {
    "tree_sitter",
    *(f"tree_sitter_{name}" for name in ("bash", "javascript", "python", "typescript")),
}
SCANNERS_PACKAGES = {"click", "msgspec", "re2", "rich", "yaml", "yara_x", *GRAMMARS}


def modules() -> Iterator[tuple[str, Path]]:
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


MODULES = dict(modules())
CLIENT = {name for name in MODULES if name == "client" or name.startswith("client.")}
#: httpcore2 comes with httpx2.
CLIENTS_PACKAGES = {"click", "cryptography", "httpcore2", "httpx2", "msgspec"}
SCAN = {name for name in MODULES if name == "scan" or name.startswith("scan.")}


def imported(name: str) -> Iterator[str]:
    """Our modules by their names inside the package, others by the name of their package; not what Python brings."""
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.Import):
            wanted = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            wanted = [f"{node.module}.{one.name}" for one in node.names]
        else:
            continue
        for one in wanted:
            top, _, rest = one.partition(".")
            if top == "vskill_platform":
                yield rest if rest in MODULES else rest.rpartition(".")[0]
            elif top not in sys.stdlib_module_names:
                yield top


@pytest.mark.parametrize(
    ("names", "known"),
    [
        pytest.param(CORE, CORE | {"cryptography", "msgspec"}, id="core"),
        pytest.param(CLIENT, CORE | CLIENT | CLIENTS_PACKAGES, id="client"),
        pytest.param(SCAN, CORE | SCAN | SCANNERS_PACKAGES, id="scan"),
    ],
)
def test_a_package_knows_only_itself_and_what_it_may_know(names, known):
    assert names <= MODULES.keys()
    stray = {f"{name} -> {one}" for name in names for one in imported(name) if one not in known}
    assert stray == set()


def test_the_core_is_small():
    assert sum(len(MODULES[name].read_text().splitlines()) for name in CORE) <= 3_000


def test_the_client_is_small():
    assert sum(len(MODULES[name].read_text().splitlines()) for name in CLIENT) <= 3_600


def test_the_clients_help_loads_nothing_of_the_registry_and_nothing_heavy():
    """`git-credential` runs it for every fetch, and people wait for it."""
    code = (
        "import sys\nsys.argv[1:] = ['--help']\nfrom vskill_platform.client.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    print(*sys.modules, file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    loaded = done.stderr.split()
    assert done.stdout.startswith("Usage: vskill-client ")
    ours = {name.removeprefix("vskill_platform.") for name in loaded if name.startswith("vskill_platform.")}
    assert ours <= CORE | CLIENT | {"domain", "signing", "sources"}
    assert not {"httpx2", "cryptography", "rich", "re2", "yaml"}.intersection(loaded)
