"""The client and the scanner that a registry serves itself: their wheels, and somebody who has uv and nothing of ours."""

import base64
import csv
import hashlib
import io
import json
import os
import tomllib
import zipfile

import msgspec
import pytest

from tests.clients.printed import page_lines
from tests.clients.registry import Registry, skill_md, write_files
from tests.support.uv import Passenger
from tools.files import ROOT
from vskill_core.dsse import open_envelope
from vskill_core.release import __version__
from vskill_core.signing_keys import public_from_jwk
from vskill_platform.web.clients.own_client import CLIENT, SCANNER, make_wheel

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def canonical(registry: Registry):
    return registry.publish("carried", {"SKILL.md": skill_md("carried")})


@pytest.fixture
def person(registry: Registry, wheels, tmp_path):
    return Passenger(tmp_path, wheels)


@pytest.mark.parametrize("part", [CLIENT, SCANNER], ids=lambda part: part.name)
def test_the_wheel_is_what_installers_check(registry, part):
    """Every member stands in RECORD with its digest; what it needs is what the part's own package declares."""
    wheel = zipfile.ZipFile(io.BytesIO(registry.get(f"/client/{part.wheel}").content))
    about = f"{part.name}-{__version__}.dist-info"
    rows = {row[0]: row for row in csv.reader(io.StringIO(wheel.read(f"{about}/RECORD").decode()))}
    assert set(rows) == set(wheel.namelist())
    for name, digest, size in rows.values():
        if not name.endswith("/RECORD"):
            made = base64.urlsafe_b64encode(hashlib.sha256(wheel.read(name)).digest()).rstrip(b"=")
            assert (int(size), digest) == (len(wheel.read(name)), f"sha256={made.decode()}")
    said = wheel.read(f"{about}/METADATA").decode().splitlines()
    declared = tomllib.loads(
        (ROOT / "packages" / part.name.removeprefix("vskill_") / "pyproject.toml").read_text()
    )["project"]
    needed = {one.removeprefix("Requires-Dist: ") for one in said if one.startswith("Requires-Dist: ")}
    assert needed == {one.lower() for one in declared["dependencies"]}
    (program,) = declared["scripts"].items()
    assert " = ".join(program) in wheel.read(f"{about}/entry_points.txt").decode()


@pytest.mark.parametrize("part", [CLIENT, SCANNER], ids=lambda part: part.name)
def test_its_digest_is_signed(registry, part):
    digest = hashlib.sha256(registry.get(f"/client/{part.wheel}").content).hexdigest()
    keys = [public_from_jwk(one) for one in registry.get("/.well-known/vskill-keys.json").json()["keys"]]
    payload, _ = open_envelope(registry.get(f"/client/{part.wheel}.dsse.json").content, keys)
    (subject,) = msgspec.json.decode(payload)["subject"]
    assert subject == {"name": part.wheel, "digest": {"sha256": digest}}


def test_another_file_is_not_there_and_the_right_one_is_named(registry):
    answer = registry.get("/client/vskill_client-0.0.1-py3-none-any.whl")
    assert answer.status_code == 404 and CLIENT.wheel in answer.text


def test_it_is_the_same_bytes_every_time():
    first = make_wheel(CLIENT)
    make_wheel.cache_clear()
    assert make_wheel(CLIENT) == first


def test_the_commands_of_a_skills_page_install_and_verify_it(registry, canonical, person):
    (line,) = [
        one.text for one in page_lines(registry, f"/skills/{canonical}") if one.text.startswith("uvx ")
    ]
    assert "Verified" in person.run(line)
    folder = person.folder / ".claude" / "skills" / "carried"
    assert (folder / "SKILL.md").read_bytes() == skill_md("carried")
    told = person.run(line.replace(f"install {canonical}", f"verify {folder} --json"))
    assert json.loads(told)["skill"] == canonical


def test_a_helper_for_git_needs_an_install_that_stays(registry, canonical, person):
    """`uvx` keeps the command in a cache: settings that call it later would call nothing one day."""
    token = registry.token("carla")
    ready = f"{registry.url}/client/{CLIENT.wheel}"
    person.run(f"uvx --from {ready} vskill-client login {registry.url}", given=f"{token}\n")
    connect = "vskill-client connect codex --yes"
    refused = person.run(f"uvx --from {ready} {connect}", code=1)
    assert "uv tool install" in refused and not (person.folder / ".codex").exists()
    person.run(f"uv tool install {ready}")
    assert "Written" in person.run(connect)
    assert "vskill-client git-credential" in (person.folder / ".gitconfig").read_text()


def test_scan_runs_the_scanner_that_the_registry_serves(registry, person):
    """After `login` nothing names the registry; the exit code is the scanner's, and without uv it says how to get it."""
    person.run(f"uv tool install {registry.url}/client/{CLIENT.wheel}")
    person.run(f"vskill-client login {registry.url}", given=f"{registry.token('carlo')}\n")
    write_files(person.folder / "good", {"SKILL.md": skill_md("good")})
    (told,) = json.loads(person.run("vskill-client scan good --format json"))["skills"]
    assert told["outcome"] == "publish"
    assert "no-such-folder" in person.run("vskill-client scan no-such-folder", code=3)
    (person.folder / "programs" / "uvx").unlink()
    refused = person.run(
        "vskill-client scan good", code=1, PATH=f"{person.folder}/.local/bin{os.pathsep}/usr/bin"
    )
    assert f"pip install {registry.url}/client/{SCANNER.wheel}" in refused
