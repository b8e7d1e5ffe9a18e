"""The one executable, `vskill-platform`: every role and every tool of an operator is a command of it.

Each group of commands is a file here. A command imports what it needs when it runs, so that `--help` is fast.
"""

import os

import click

from vskill_platform import __version__
from vskill_platform.cli.admin import admin
from vskill_platform.cli.backup import backup, restore
from vskill_platform.cli.collection import collection
from vskill_platform.cli.completion import completion
from vskill_platform.cli.connection import connect
from vskill_platform.cli.demo import demo
from vskill_platform.cli.doctor import doctor
from vskill_platform.cli.errors import PlatformGroup
from vskill_platform.cli.keys import keys
from vskill_platform.cli.login import login, logout, whoami
from vskill_platform.cli.migrate import migrate
from vskill_platform.cli.owner import owner
from vskill_platform.cli.queue import queue
from vskill_platform.cli.reports import audit, report
from vskill_platform.cli.repos import repo
from vskill_platform.cli.review import block, review
from vskill_platform.cli.scan import scan
from vskill_platform.cli.serve import schedule, serve, worker
from vskill_platform.cli.skills import skill
from vskill_platform.cli.status import status
from vskill_platform.cli.submission import submission
from vskill_platform.cli.submit import submit
from vskill_platform.cli.token import token
from vskill_platform.cli.verify import verify
from vskill_platform.cli.webhooks import webhook


@click.group(cls=PlatformGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option(
    "--registry",
    metavar="URL",
    default="",
    help="Act on the registry at this address instead of on this machine.",
)
@click.option(
    "--as", "account", metavar="ACCOUNT", help="On this machine: act as this account, not as operator."
)
@click.pass_context
@click.version_option(__version__, prog_name="vskill-platform")
def cli(ctx: click.Context, *, debug: bool, registry: str, account: str | None) -> None:
    """A self-hosted registry that verifies agent skills before it lists them.

    Settings come from VSKILL_* variables; docs/reference/settings.md lists them.
    """
    del debug  # read by PlatformGroup
    ctx.obj = connect(registry, account)


#: Roles, then what authors do, then what reviewers and operators do.
COMMANDS = (
    *(serve, worker, schedule),
    *(scan, submit, status, submission, skill, owner, verify, demo),
    *(queue, review, block, report, audit, repo, webhook, keys, doctor),
    *(backup, restore, migrate),
    *(login, logout, whoami, admin, token, collection, completion),
)

for command in COMMANDS:
    cli.add_command(command)


def _open_standard_descriptors() -> None:
    """Give a process that was started without stdin, stdout or stderr the null device in their place. Otherwise the
    first files and sockets that it opens get these numbers: uvloop aborts, and stray output would go into them."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free


def main() -> None:
    """The entry point of the executable."""
    _open_standard_descriptors()
    cli.main(prog_name="vskill-platform")
