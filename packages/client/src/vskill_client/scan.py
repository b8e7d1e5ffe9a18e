"""`scan`: the scanner of the registry, run on this machine. It is many times as large as the client, so it is no part
of it: uv gets the wheel that the registry serves, keeps it, and runs it."""

import os
import shutil

import click

from vskill_client.destination import current_destination, run_with_caller
from vskill_client.wire.base import ActionRequest, call_for
from vskill_core.errors import Unsupported
from vskill_core.release import __version__


class AskRelease(ActionRequest, frozen=True, kw_only=True):
    """Which release the registry is."""


RELEASE = call_for("registry.release", "/healthz", AskRelease, dict[str, str])


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", metavar="PATH...", nargs=-1, required=True, type=click.UNPROCESSED)
def scan(*, words: tuple[str, ...]) -> None:
    """Say what the registry would do with skills on this machine.

    Runs the registry's own scanner (`vskill-scan`) with uv, which downloads it from the registry once. The skills stay
    on this machine. Options and exit codes are those of `vskill-scan`: `scan -- --help` lists them.
    """
    told = run_with_caller(lambda caller: caller.call(RELEASE, AskRelease()))
    version = told.get("version", __version__)
    wheel = f"{current_destination().registry}/client/vskill_scan-{version}-py3-none-any.whl"
    runner = shutil.which("uvx")
    if runner is None:
        message = "The scanner is a program of its own, which uv runs, and uv is not installed."
        raise Unsupported(message, fix=f"install uv, or run 'pip install {wheel}' and then 'vskill-scan'")
    os.execv(runner, (runner, "--from", wheel, "vskill-scan", *words))  # noqa: S606 - no shell, on purpose
