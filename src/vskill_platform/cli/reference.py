"""`docs/reference/commands.md`, written from the commands themselves so that it cannot drift.

`python -m vskill_platform.cli.reference > docs/reference/commands.md` writes it; a test compares.
"""

from collections.abc import Iterator

import click

from vskill_platform.cli import cli

WIDTH = 100

HEAD = """\
# Commands

`vskill-platform` is the one executable. Every command reads its settings from `VSKILL_*` variables
([settings](settings.md)). Commands other than `serve` look at the same store as a running server.

Exit codes: 0 for success; 1 for an error, which is one line on stderr, or for a negative answer where a
command says so; 2 for a mistake in the command line. `scan` has codes of its own, which it lists. A role
stops with 0 after the first SIGINT or SIGTERM, and at once with 130 or 143 after a second.
"""


def render() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_sections(cli, "vskill-platform", None)])


def _sections(command: click.Command, path: str, parent: click.Context | None) -> Iterator[str]:
    name = path.rpartition(" ")[2]
    # A width of its own: the page must not depend on the terminal of whoever writes it.
    context = click.Context(
        command,
        parent,
        name,
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        help_option_names=["-h", "--help"],
    )
    yield f"## {path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from _sections(command.commands[name], f"{path} {name}", context)


if __name__ == "__main__":
    click.echo(render(), nl=False)
