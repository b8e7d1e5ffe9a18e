"""The files that operators start from: they parse, every setting and command in them exists, and nothing in them needs
more rights than it uses."""

import configparser
import subprocess
from itertools import takewhile
from pathlib import Path

import click
import pytest
import yaml

from tests.support.nats import program
from vskill_platform.bootstrap import NATS, POSTGRES
from vskill_platform.cli import cli
from vskill_platform.settings import PREFIX, load_settings

DEPLOY = Path(__file__).parents[2] / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
ROLES = ("web", "worker", "schedule")


@pytest.fixture
def compose():
    text = (DEPLOY / "compose.yaml").read_text().replace("${POSTGRES_PASSWORD:?set a password}", "hush")
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
        assert settings.store.partition(":")[0] in POSTGRES
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
    assert {"postgres", "nats"} <= services.keys()
    mounted = {name.partition(":")[0] for one in services.values() for name in one["volumes"]}
    assert {name for name in mounted if not name.startswith(".")} == compose["volumes"].keys()


def test_images_are_named_without_a_registrys_host(compose):
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    bases = [line.split()[1] for line in lines if line.startswith("FROM ")]
    images = [one["image"] for one in compose["services"].values()]
    for image in [*bases, *images]:
        assert "/" not in image, image


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
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign] # names keep their case
    parser.read(unit)
    service = parser["Service"]
    program, *arguments = service["ExecStart"].split()
    assert program.endswith("/vskill-platform")
    check_command(arguments)
    assert service["User"] == "vskill"
    assert service["Restart"] == "always"
    assert int(service["TimeoutStopSec"]) * 1_000 > load_settings({}).shutdown_grace_ms
    assert parser["Install"]["WantedBy"] == "vskill-platform.target"


def test_the_units_settings_exist():
    lines = (DEPLOY / "systemd" / "environment").read_text().splitlines()
    check_settings(dict(line.split("=", 1) for line in lines if line and not line.startswith("#")))


def test_the_images_drivers_are_those_that_the_tests_ran_with():
    locked = (DEPLOY.parent / "requirements-dev.lock").read_text().splitlines()
    wanted = [line for line in (DEPLOY / "engines.lock").read_text().splitlines() if not line.startswith("#")]
    for package in ("asyncpg", "nats-py"):
        assert block(locked, package) == block(wanted, package)


def block(lines: list[str], package: str) -> list[str]:
    (start,) = [number for number, line in enumerate(lines) if line.startswith(f"{package}==")]
    return [lines[start], *takewhile(lambda line: line.startswith(" "), lines[start + 1 :])]
