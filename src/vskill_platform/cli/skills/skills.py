"""`skill`: see a published skill, withdraw versions of it and bring them back.

A NAME is a canonical name (owner/repository/skill) or a flat one that means exactly one skill.
"""

import click
import msgspec

from vskill_platform.cli.errors import ActionGroup
from vskill_platform.cli.process import run_in_env


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.skills.skill_commands")
def skill() -> None:
    """Look at published skills, withdraw versions and bring them back."""


@skill.command("export")
def export() -> None:
    """Print every published skill as a line of JSON, sorted by name."""
    from vskill_client.wire.base import camel
    from vskill_platform.actions.principal import OPERATOR
    from vskill_platform.actions.skills.catalogue import enumerate_catalogue
    from vskill_platform.actions.visibility import resolve
    from vskill_platform.domain.skills.skill import PublishedSkillSummary

    async def enumerate_all() -> list[PublishedSkillSummary]:
        return await enumerate_catalogue(await resolve(OPERATOR))

    for found in run_in_env(enumerate_all):
        click.echo(msgspec.json.encode(camel(found)))
