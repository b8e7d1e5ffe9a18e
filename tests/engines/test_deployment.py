"""The files that operators start from: they parse, every setting and command in them exists, and nothing in them needs
more rights than it uses."""

import configparser
import hashlib
import json
import re
import subprocess
from itertools import takewhile
from pathlib import Path

import click
import pytest
import yaml

from tests.clients.tls import write_certificate
from tests.support import s3
from tests.support.nats import program
from tools import monitoring
from tools.blocks import blocks
from tools.files import ROOT
from tools.programs import MISSING, find
from vskill_core.errors import BlobUnavailable
from vskill_platform.bootstrap import NATS, POSTGRES
from vskill_platform.cli import cli
from vskill_platform.ledger.blobs.s3 import S3Blobs
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.observing.metrics import Metrics
from vskill_platform.queue.alerts import AlertCode
from vskill_platform.settings import PREFIX, load_settings

pytestmark = pytest.mark.anyio

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
ROLES = ("web", "worker", "schedule")
PUBLIC_URL = "https://skills.example.org"
PAGE = DEPLOY.parent / "docs" / "how-to" / "self-host.md"


@pytest.fixture
def compose():
    """With what the operator must set, of which the file itself says what it is."""
    text = (DEPLOY / "compose.yaml").read_text()
    given = {"POSTGRES_PASSWORD": "hush", "S3_PASSWORD": s3.SECRET, "VSKILL_PUBLIC_URL": PUBLIC_URL}
    for name, value in given.items():
        text = re.sub(rf"\$\{{{name}:\?[^}}]+\}}", value, text)
    return yaml.safe_load(text)


def check_command(arguments: list[str]) -> None:
    """The command exists and takes these options."""
    name, *rest = arguments
    command = cli.get_command(click.Context(cli), name)
    assert command is not None, name
    rest = ["8080" if one == "%i" else one for one in rest]
    command.make_context(name, rest, parent=click.Context(cli))


def check_settings(environment: dict[str, str]) -> None:
    """Every variable of ours is a setting, and its value is valid."""
    ours = {name: str(value) for name, value in environment.items() if name.startswith(PREFIX)}
    settings = load_settings(ours)
    if "VSKILL_STORE" in ours:
        assert settings.public_url == PUBLIC_URL
        assert settings.store.partition(":")[0] in POSTGRES
    if "VSKILL_BROKER" in ours:
        assert settings.broker.partition(":")[0] in NATS


@pytest.mark.parametrize("role", ROLES)
def test_each_role_of_the_compose_file_runs_a_command_that_exists_with_settings_that_exist(compose, role):
    service = compose["services"][role]
    check_command(service["command"])
    check_settings(service["environment"])
    assert service["cap_drop"] == ["ALL"]
    assert service["read_only"] is True


def test_the_compose_file_has_two_web_processes_two_workers_and_their_servers(compose):
    services = compose["services"]
    assert {role: services[role].get("deploy", {}).get("replicas", 1) for role in ROLES} == {
        "web": 2,
        "worker": 2,
        "schedule": 1,
    }
    assert {"postgres", "nats", "s3"} <= services.keys()
    mounted = {name.partition(":")[0] for one in services.values() for name in one.get("volumes", ())}
    assert {name for name in mounted if not name.startswith(".")} == compose["volumes"].keys()
    # Roles share servers, and no folder.
    assert all("volumes" not in services[role] for role in ROLES)


async def test_the_s3_server_of_the_compose_file_takes_content_from_its_roles_and_from_nobody_else(
    compose, tmp_path, monkeypatch
):
    """Its own command and variables, on ports and in a folder of this test; the bucket is not made before."""
    service, settings = compose["services"]["s3"], compose["services"]["web"]["environment"]
    with s3.running(service["command"], service["environment"], tmp_path) as port:
        for name in ("AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, settings[name])
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        blobs = await S3Blobs.open(settings["VSKILL_BLOBS"], SystemClock(), Metrics())
        address = hashlib.sha256(b"content").hexdigest()
        await blobs.put(address, b"content")
        assert await blobs.get(address) == b"content"
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "guessed")
        with pytest.raises(BlobUnavailable, match="was refused"):
            await S3Blobs.open(settings["VSKILL_BLOBS"], SystemClock(), Metrics())


def test_images_are_named_without_a_registrys_host(compose):
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    bases = [line.split()[1] for line in lines if line.startswith("FROM ")]
    images = [one["image"] for one in compose["services"].values()]
    for image in [*bases, *images]:
        # A host has a dot or a port; without one, the first part is a name on the engine's own registry.
        first, _, rest = image.rpartition("/")[0].partition("/")
        assert not rest and "." not in first and ":" not in first, image


def test_the_image_runs_as_an_ordinary_user_with_settings_that_exist_and_says_whether_it_is_up():
    text = (DEPLOY / "Containerfile").read_text()
    last = text[text.rindex("\nFROM ") :].replace("\\\n", " ")
    instructions = [line.split(maxsplit=1) for line in last.splitlines() if line and not line.startswith("#")]
    given = dict(one for one in instructions if len(one) == 2)
    assert int(given["USER"]) > 0
    assert "/healthz" in given["HEALTHCHECK"]
    environment = dict(pair.split("=", 1) for pair in given["ENV"].split())
    check_settings(environment)
    check_command(yaml.safe_load(given["CMD"]))


def test_the_servers_configuration_is_where_the_compose_file_looks_and_names_how_often_it_syncs(compose):
    (mounted,) = [one for one in compose["services"]["nats"]["volumes"] if one.startswith("./")]
    file = DEPLOY / mounted.partition(":")[0]
    assert "sync_interval: 1s" in file.read_text()
    checked = subprocess.run([program(), "-c", file, "-t"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_each_unit_runs_a_command_that_exists_as_an_ordinary_user_and_stops_in_time(unit):
    # systemd takes a name several times, as `Environment=`.
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign] # names keep their case
    parser.read(unit)
    service = parser["Service"]
    program, *arguments = service["ExecStart"].split()
    assert program.endswith("/vskill-platform")
    check_command(arguments)
    check_settings(dict(re.findall(r"^Environment=(\w+)=(.*)$", unit.read_text(), re.MULTILINE)))
    assert service["User"] == "vskill"
    assert service["Restart"] == "always"
    assert int(service["TimeoutStopSec"]) * 1_000 > load_settings({}).shutdown_grace_ms
    assert service["ProtectSystem"] == "strict"
    assert service["PrivateTmp"] == "yes"
    assert service["StateDirectory"]
    whole = unit.name == "vskill-platform.service"
    assert parser["Install"]["WantedBy"] == ("multi-user.target" if whole else "vskill-platform.target")


def test_the_page_shows_the_unit_that_is_in_the_folder():
    (shown,) = [one.text for one in blocks(PAGE.read_text()) if one.language == "systemd"]
    assert shown == (DEPLOY / "systemd" / "vskill-platform.service").read_text()


@pytest.mark.slow
def test_nginx_accepts_the_block_on_the_page(tmp_path):
    nginx = find("nginx")
    if nginx is None:
        pytest.skip(MISSING.format(name="nginx"))
    (shown,) = [one.text for one in blocks(PAGE.read_text()) if one.language == "nginx"]
    certificate, key = re.findall(r"ssl_certificate(?:_key)? (\S+);", shown)
    ours = write_certificate(tmp_path / "certificate.pem")
    shown = shown.replace(key, str(ours)).replace(certificate, str(tmp_path / "certificate.pem"))
    # Debian's own places are not there.
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{kind}_temp_path {tmp_path}/{kind};\n" for kind in kinds)
    (tmp_path / "nginx.conf").write_text(
        f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{places}{shown}}}\n"
    )
    command = [nginx, "-t", "-q", "-e", "stderr", "-p", tmp_path, "-c", tmp_path / "nginx.conf"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_the_units_settings_exist():
    lines = (DEPLOY / "systemd" / "environment").read_text().splitlines()
    check_settings(dict(line.split("=", 1) for line in lines if line and not line.startswith("#")))


def test_the_images_drivers_are_those_that_the_tests_ran_with():
    locked = (DEPLOY.parent / "requirements-dev.lock").read_text().splitlines()
    wanted = [line for line in (DEPLOY / "engines.lock").read_text().splitlines() if not line.startswith("#")]
    for package in ("asyncpg", "asyncssh", "nats-py", "obstore"):
        assert block(locked, package) == block(wanted, package)


def block(lines: list[str], package: str) -> list[str]:
    (start,) = [number for number, line in enumerate(lines) if line.startswith(f"{package}==")]
    return [lines[start], *takewhile(lambda line: line.startswith(" "), lines[start + 1 :])]


def test_rules_and_dashboard_ask_for_metrics_that_are_exposed_and_for_all_alerts():
    """Prometheus and Grafana were not at hand; the names are what a registry says."""
    ends = {"counter": "_total", "histogram": "_bucket"}
    exposed = {one.name + ends.get(one.type, "") for one in Metrics().registry.collect()}
    (group,) = yaml.safe_load((ROOT / monitoring.RULES).read_text())["groups"]
    dashboard = json.loads((ROOT / monitoring.DASHBOARD).read_text())
    shown = [one["expr"] for panel in dashboard["panels"] for one in panel["targets"]]
    asked = [one["expr"] for one in group["rules"]]
    assert {name for text in (*asked, *shown) for name in re.findall(r"vskill_\w+", text)} == exposed
    assert {one["alert"] for one in group["rules"]} >= {f"vskill_{code.value}" for code in AlertCode}
    assert len(shown) == len(exposed) and all(text.count("(") == text.count(")") for text in (*asked, *shown))


KUBERNETES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))


def test_the_manifests_agree_with_the_schemas_of_kubernetes(tmp_path):
    """No cluster is here. A misspelt field is refused."""
    program = ROOT / ".venv" / "tools" / "bin" / "kubernetes-validate"
    assert program.exists(), "kubernetes-validate is not there: run 'make test-slow' once"

    def check(*files: Path) -> subprocess.CompletedProcess[str]:
        command: list[str | Path] = [program, "--strict", "-k", "1.37", *files]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    checked = check(*KUBERNETES)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    misspelt = tmp_path / "web.yaml"
    misspelt.write_text(
        (DEPLOY / "kubernetes" / "web.yaml").read_text().replace("containers:", "containesr:")
    )
    assert check(misspelt).returncode != 0


@pytest.mark.parametrize("file", KUBERNETES, ids=lambda file: file.name)
def test_each_manifest_runs_a_command_with_settings_that_exist_and_has_no_more_rights_than_it_needs(file):
    documents = list(yaml.safe_load_all(file.read_text()))
    if file.stem == "settings":
        check_settings({"VSKILL_STORE": "postgresql://vskill@postgres/vskill", **documents[0]["data"]})
        return
    pod = documents[0]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    check_command(container["args"])
    assert pod["securityContext"]["runAsNonRoot"] and container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert pod["terminationGracePeriodSeconds"] * 1_000 > load_settings({}).shutdown_grace_ms + 5_000
    named = {one["configMapRef"]["name"] for one in container["envFrom"] if "configMapRef" in one}
    assert named == {
        yaml.safe_load((DEPLOY / "kubernetes" / "settings.yaml").read_text())["metadata"]["name"]
    }
    # Only folders of the pod itself, and the key, which its group alone may read.
    kinds = {kind for volume in pod["volumes"] for kind in volume.keys() - {"name"}}
    (key,) = (volume["secret"] for volume in pod["volumes"] if "secret" in volume)
    assert kinds == {"emptyDir", "secret"} and key["defaultMode"] == 0o440
