"""Groups of commands that are made from actions."""

from importlib import import_module
from typing import Any

import click

from vskill_client.group import PlatformGroup


class ActionGroup(PlatformGroup):
    """A group whose commands are made from actions: the module that makes them is loaded when one is asked for, so that
    `--help` of the executable stays fast."""

    def __init__(self, *args: Any, commands_in: str, **options: Any) -> None:
        super().__init__(*args, **options)
        self._commands_in = commands_in

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._load()
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        self._load()
        return super().get_command(ctx, cmd_name)

    def _load(self) -> None:
        for command in import_module(self._commands_in).COMMANDS:
            self.add_command(command)
