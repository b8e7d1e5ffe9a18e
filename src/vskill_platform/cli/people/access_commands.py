"""The commands of `access`."""

from typing import Any

import click

from vskill_client.destination import Caller
from vskill_platform.actions.people.access import (
    CHANGE_ACCESS,
    PREVIEW_ACCESS,
    SHOW_ACCESS,
    AccessPreview,
    AccessView,
    PreviewAccess,
)
from vskill_platform.cli.action_commands import ForetoldQuestion, command_for
from vskill_platform.cli.people.namespace_commands import show_reach
from vskill_platform.domain.people.namespace import RegistryMode


def show_access(access: AccessView) -> None:
    click.echo(f"The registry is {access.mode.value}. Who may submit: {access.submitters.value}.")
    if access.github_sign_in is not None:
        click.echo(access.github_sign_in)


def show_preview(found: AccessPreview) -> None:
    click.echo(f"The registry is {found.mode.value}. As {found.to.value}:")
    show_reach(found.reach)
    if found.github_sign_in is not None:
        click.echo(found.github_sign_in)


async def foretell(caller: Caller, given: dict[str, Any]) -> dict[str, Any]:
    if given["mode"] is not None:
        show_preview(await caller.call(PREVIEW_ACCESS, PreviewAccess(mode=RegistryMode(given["mode"]))))
    return {}


COMMANDS = (
    command_for(SHOW_ACCESS, show_access),
    command_for(PREVIEW_ACCESS, show_preview, arguments=("mode",)),
    command_for(
        CHANGE_ACCESS,
        show_access,
        confirm=ForetoldQuestion("Change who may use the registry?", foretell),
        about="It prints first what would disappear and appear.",
    ),
)
