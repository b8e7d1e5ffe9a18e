"""The executable `vskill-client`. A command imports what it needs when it runs, so that `--help` is fast."""

import click

from vskill_platform.client.connect import connect_client, git_credential
from vskill_platform.client.destination import Destination, find_destination
from vskill_platform.client.group import PlatformGroup
from vskill_platform.client.install import install
from vskill_platform.client.lock import lock
from vskill_platform.client.login import login, logout, whoami
from vskill_platform.client.search import search
from vskill_platform.client.status import status
from vskill_platform.client.submit import submit
from vskill_platform.client.verify import verify
from vskill_platform.domain.release import __version__

#: Every command; `vskill-platform` has them too.
COMMANDS = (
    *(search, install, lock, verify, submit, status, login, logout, whoami, connect_client, git_credential),
)


@click.group(cls=PlatformGroup, commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
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
    ctx.obj = find_destination(registry)


def main() -> None:
    """The entry point of the executable."""
    cli.main(prog_name=Destination.program)
