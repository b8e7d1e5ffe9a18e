"""The commands of whoever maintains a published skill. A SKILL is a full name (owner/repository/skill) or a short one
that means exactly one skill."""

import click

from vskill_platform.actions.takedowns import RESTORE, TAKE_DOWN
from vskill_platform.actions.versions import DELETE, SHOW_SKILL, UNYANK, YANK, SkillState
from vskill_platform.cli.action_commands import command_for
from vskill_platform.cli.output import UNKNOWN, console, plain, print_table


def show_state(changed: SkillState) -> None:
    current = (
        f"version {changed.current_version} is current" if changed.current_version else "no version is live"
    )
    states = ", ".join(f"{one.version} {one.status.value}" for one in changed.versions)
    click.echo(f"{changed.skill}: {current} ({states})")


def show_skill(found: SkillState) -> None:
    console().print(plain(f"{found.skill}: {found.description}"))
    rows = [
        (one.version, one.status.value, one.certification, one.published_at.replace("T", " "), one.reason)
        for one in found.versions
    ]
    title = f"current version: {found.current_version or UNKNOWN}"
    print_table(title, ("version", "status", "certification", "published (UTC)", "why"), rows)


COMMANDS = (
    command_for(SHOW_SKILL, show_skill),
    command_for(YANK, show_state),
    command_for(UNYANK, show_state),
    command_for(TAKE_DOWN, show_state, arguments=("version",)),
    command_for(RESTORE, show_state, arguments=("version",)),
    command_for(DELETE, show_state, confirm="Withdraw every version and end its submission?"),
)
