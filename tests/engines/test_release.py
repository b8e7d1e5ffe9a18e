"""A release, used by somebody who has its files and no clone: each way of `docs/how-to/get-it.md`, by its own words."""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from urllib.request import urlopen

import pytest
from packaging.requirements import Requirement

from tests.cli.role_processes import announced
from tests.support.compiled_rules import keep_compiled_rules
from tests.support.lifetimes import running
from tests.support.patience import PATIENCE_S
from tests.support.uv import Passenger
from tests.support.wheels import make_wheelhouse
from tools.blocks import blocks
from tools.files import ROOT
from vskill_core.release import __version__
from vskill_platform.web.documents import DOCUMENTS

pytestmark = pytest.mark.slow

PAGE = [
    one.text.replace("VERSION", __version__)
    for one in blocks((ROOT / "docs/how-to/get-it.md").read_text("utf-8"))
]
TRY, SERVER, IMAGE = (text.partition("\n")[2] for text in PAGE)
#: What the image has besides, for PostgreSQL, NATS, S3 and SSH.
DRIVERS = re.findall(r"^([\w-]+)==", (ROOT / "deploy/engines.lock").read_text("utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release") / "dist"
    build_release(folder)
    return folder


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Every package that the registry and its image need, as an index would give it."""
    needed = (Requirement(one) for one in metadata.requires("vskill-platform") or ())
    names = (one.name for one in needed if one.marker is None or one.marker.evaluate({"extra": ""}))
    return make_wheelhouse(tmp_path_factory.mktemp("index") / "wheels", *names, *DRIVERS)


@pytest.fixture
def person(built, index, tmp_path):
    """Somebody with the files of the release in their folder; the locks hold the hashes of this index."""
    folder = tmp_path / "person"
    shutil.copytree(built, folder)
    locks: dict[str, list[str]] = {"requirements.lock": [], "engines.lock": []}
    for one in index.glob("*.whl"):
        name = one.name.partition("-")[0].lower().replace("_", "-")
        digest = hashlib.sha256(one.read_bytes()).hexdigest()
        lock = "engines.lock" if name in DRIVERS else "requirements.lock"
        locks[lock].append(f"{_pin(name)} --hash=sha256:{digest}\n")
    for lock, lines in locks.items():
        (folder / lock).write_text("".join(lines))
    person = Passenger(folder, index)
    person.variables |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index)}
    return person


def _pin(name: str) -> str:
    found = metadata.distribution(name)
    return f"{found.name}=={found.version}"


def build_release(folder: Path) -> None:
    subprocess.run(
        ["sh", "tools/release.sh", "build", folder],
        cwd=ROOT,
        env={**os.environ, "PYTHON": sys.executable},
        check=True,
    )


def test_it_is_whole_and_the_same_bytes_every_time(built, tmp_path):
    build_release(tmp_path / "again")
    sums = (built / "SHA256SUMS").read_text()
    assert (tmp_path / "again" / "SHA256SUMS").read_text() == sums
    names = {line.split(maxsplit=1)[1] for line in sums.splitlines()}
    assert {one.name for one in built.iterdir()} == names | {"SHA256SUMS"}
    text = (ROOT / "docs/how-to/get-it.md").read_text("utf-8")
    told = {
        line.split("`")[1].replace("VERSION", __version__)
        for line in text.splitlines()
        if line.startswith("| `")
    }
    assert told <= names | {"SHA256SUMS"}
    assert (built / f"notes-{__version__}.md").read_text().startswith("## ")
    assert json.loads((built / f"vskill-platform-{__version__}.cdx.json").read_text())["components"]


@contextmanager
def serving(person: Passenger, command: str, **variables: str) -> Iterator[str]:
    """A registry that the command starts; it has all documents, and publishes what is submitted. Gives its address."""
    person.variables |= {**variables, "VSKILL_DATA_DIR": str(person.folder / "data")}
    keep_compiled_rules(person.folder / "data")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with running(
        ["sh", "-euc", f"exec {command} --port 0"], cwd=person.folder, env=person.variables, **pipes
    ) as process:
        address = announced(process)["Address"]
        with urlopen(f"{address}/docs", timeout=PATIENCE_S) as page:
            text = page.read().decode()
        assert [path for path in DOCUMENTS if f'href="/docs/{path}"' not in text] == []
        (person.folder / "tidy").mkdir()
        (person.folder / "tidy" / "SKILL.md").write_text(
            "---\nname: tidy\ndescription: Sorts files.\n---\n# Tidy\n"
        )
        submit = command.partition(" serve")[0] + " submit tidy --watch"
        assert "PUBLISHED" in person.run(submit)
        yield address


def test_uvx_runs_a_whole_registry_from_the_wheel(person):
    with serving(person, TRY.strip()) as address:
        assert address.startswith("http://127.0.0.1:")


def test_pip_installs_it_with_every_hash_and_what_the_unit_starts_runs(person):
    told = person.run(SERVER)
    assert "ok" in told and "not ok" not in told
    unit = (person.folder / "vskill-platform.service").read_text()
    (command,) = re.findall(r"^ExecStart=/opt/(.*)$", unit, re.MULTILINE)
    with serving(person, command, **dict(re.findall(r"(?m)^Environment=(\w+)=(.*)$", unit))) as address:
        assert address.startswith("http://127.0.0.1:")


def test_the_image_is_made_from_files_of_its_context_alone_and_what_it_starts_runs(person):
    """Nothing is built in it, so nothing is fetched that no lock holds to its hash. The steps that install run here, then
    what it starts, and then what asks whether it is up."""
    unpack, enter, *_ = IMAGE.splitlines()
    person.run(unpack)
    context = person.folder / enter.split()[-1]
    text = (context / "Containerfile").read_text().replace("\\\n", " ").replace("/opt/", f"{person.folder}/")
    for line in (line for line in text.splitlines() if line.startswith("COPY ") and "--from" not in line):
        assert all(list(context.glob(word)) for word in line.split()[1:-1]), line
    installs = [line.removeprefix("RUN ") for line in text.splitlines() if "pip install" in line]
    installs[0] = installs[0].replace("python", sys.executable, 1)
    assert installs and all("--require-hashes" in line or "--no-index" in line for line in installs)
    for lock in ("requirements.lock", "engines.lock"):
        shutil.copy(person.folder / lock, context)
    person.run("; ".join((enter, *installs)))

    last = text[text.rindex("\nFROM ") :]
    told = dict(re.findall(r"(?m)^(ENV|ENTRYPOINT|CMD|HEALTHCHECK)(?: +--\S+)*(?: +CMD)? +(.*)$", last))
    variables = dict(re.findall(r"(\w+)=(\S+)", told["ENV"]))
    variables["PATH"] = variables["PATH"].replace("$PATH", person.variables["PATH"])
    program, ask = json.loads(told["ENTRYPOINT"]), json.loads(told["HEALTHCHECK"])
    command = [*program[program.index("--") + 1 :], *json.loads(told["CMD"])]
    with serving(person, " ".join(command), **variables) as address:
        place = address.replace("0.0.0.0", "127.0.0.1")
        ask[-1] = ask[-1].replace("http://127.0.0.1:8080", place)
        person.run(shlex.join(ask))


def test_the_archive_holds_the_tests_too(built):
    with tarfile.open(built / f"vskill_platform-{__version__}.tar.gz") as opened:
        names = set(opened.getnames())
    assert f"vskill_platform-{__version__}/tests/engines/test_release.py" in names
