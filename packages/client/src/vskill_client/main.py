"""The executable `vskill-client`. A command imports what it needs when it runs, so that `--help` is fast."""

import click

from vskill_client.connect import connect_client, git_credential
from vskill_client.destination import Destination, find_destination
from vskill_client.group import PlatformGroup
from vskill_client.install import install, lock
from vskill_client.login import login, logout, whoami
from vskill_client.publish import publish
from vskill_client.scan import scan
from vskill_client.search import search
from vskill_client.status import status
from vskill_client.submit import submit
from vskill_client.verify import verify
from vskill_core.release import __version__

#: `vskill-platform` has these too, and a `scan` of its own.
COMMANDS = (
    *(search, install, lock, verify, submit, publish, status, login, logout, whoami, connect_client),
    git_credential,
)


@click.group(
    cls=PlatformGroup, commands=(*COMMANDS, scan), context_settings={"help_option_names": ["-h", "--help"]}
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option(
    "--registry",
    metavar="URL",
    default="",
    help="Act on the registry at this address instead of the one that you signed in to last.",
)
@click.pass_context
@click.version_option(__version__, prog_name=Destination.program)
def cli(ctx: click.Context, *, debug: bool, registry: str) -> None:
    """Find, install, verify and submit agent skills at a registry that verifies them.

    Without --registry, commands act on the registry in VSKILL_PLATFORM_REGISTRY, or on the one that you signed in to
    last.
    """
    del debug  # read by PlatformGroup
    ctx.obj = find_destination(registry, Destination())


def main() -> None:
    cli.main(prog_name=Destination.program)
