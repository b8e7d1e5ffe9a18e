"""The commands of `docs/reference/commands.md`: the help of each, as the command itself prints it."""

from collections.abc import Iterator

import click

from vskill_client.main import cli as client
from vskill_platform.cli import cli

WIDTH = 100


def render() -> str:
    """Every command with its help, below its group; of the client what it lists, and the one that is not the same."""
    listed, *others = _sections(client, "vskill-client", None)
    own = [one for one in others if one.startswith("## vskill-client scan\n")]
    return "\n".join((listed, *own, *_sections(cli, "vskill-platform", None)))


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
