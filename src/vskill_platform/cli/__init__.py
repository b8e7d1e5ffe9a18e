"""The one executable, `vskill-platform`: every role and every tool of an operator is a command of it.

`groups` lists those that are made from actions. A command imports what it needs when it runs, so that `--help` is fast.
"""

import os
from collections.abc import Callable
from itertools import chain

import click
from click.shell_completion import CompletionItem

from vskill_client.group import PlatformGroup
from vskill_client.main import COMMANDS as CLIENT_COMMANDS
from vskill_platform import __version__
from vskill_platform.cli.completion import completion, offer
from vskill_platform.cli.connection import connect
from vskill_platform.cli.groups import GROUPS
from vskill_platform.cli.operation.backup import backup, restore
from vskill_platform.cli.operation.doctor import doctor
from vskill_platform.cli.operation.keys import keys
from vskill_platform.cli.operation.migrate import migrate
from vskill_platform.cli.operation.serve import schedule, serve, worker
from vskill_platform.cli.process import PROGRAM, keep_private, refuse_elsewhere
from vskill_platform.cli.submissions.scan import scan
from vskill_platform.cli.verdicts.judge import judge

#: The section of commands that act on this machine alone.
SERVER = "On the server's machine"
#: Every command, by who needs it, as `--help` lists them.
SECTIONS = {
    "For everybody": (
        *("search", "install", "lock", "verify", "submit", "publish", "status"),
        *("submission", "skill", "owner", "publisher", "namespace", "follow", "credential"),
        *("login", "logout", "whoami", "account", "notification", "watch"),
        *("connect", "git-credential", "scan", "completion"),
    ),
    "For reviewers and admins": (
        *("review", "block", "report", "queue", "repo", "audit", "collection", "webhook", "admin", "token"),
        *("access", "team", "content", "policy", "memory", "upstream", "bundle"),
    ),
    SERVER: (*("serve", "worker", "schedule", "keys", "doctor", "judge", "backup", "restore", "migrate"),),
}
#: Commands whose files are a person's own, to be shared as the person's umask says. What others create is the
#: registry's.
FOR_PEOPLE = ("install", "scan", "connect")


class SectionedGroup(PlatformGroup):
    """The executable itself: its commands are listed by section."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(len(name) for name in self.list_commands(ctx))
        limit = formatter.width - width - 6
        for title, names in SECTIONS.items():
            rows = [(name.ljust(width), self.commands[name].get_short_help_str(limit)) for name in names]
            with formatter.section(title):
                formatter.write_dl(rows)

    def offer(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return offer(ctx, param, incomplete)


@click.group(cls=SectionedGroup, context_settings={"help_option_names": ["-h", "--help"]})
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
@click.version_option(__version__, prog_name=PROGRAM)
def cli(ctx: click.Context, *, debug: bool, registry: str, account: str | None) -> None:
    """Use and run a registry that verifies agent skills before it lists them.

    Without --registry, commands act on the registry of this machine, which VSKILL_* variables describe; where there is
    none, on the one that you signed in to last.
    """
    del debug  # read by PlatformGroup
    begin: Callable[[], None] | None = ctx.obj
    if begin is not None and ctx.invoked_subcommand not in FOR_PEOPLE:
        begin()
    if ctx.invoked_subcommand in SECTIONS[SERVER]:
        # The environment may name a registry for other commands; what the command line names would be ignored.
        refuse_elsewhere(registry, account)
    else:
        ctx.obj = connect(registry, account)


_COMMANDS = {
    str(command.name): command
    for command in (
        *(*CLIENT_COMMANDS, *GROUPS.values(), scan, completion),
        *(serve, worker, schedule, keys, doctor, judge, backup, restore, migrate),
    )
}
for listed in chain(*SECTIONS.values()):
    cli.add_command(_COMMANDS[listed])


def _open_standard_descriptors() -> None:
    """Give a process that was started without stdin, stdout or stderr the null device in their place. Otherwise the
    first files and sockets that it opens get these numbers: uvloop aborts, and stray output would go into them."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest number that is free; for the processes that this one starts as well.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def main() -> None:
    _open_standard_descriptors()
    # The process is ours, so its umask and limits are too; `cli` itself may be called in anybody's process.
    cli.main(prog_name=PROGRAM, obj=keep_private)
