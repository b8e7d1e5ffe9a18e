"""`admin`: accounts and who may do what."""

import click

from vskill_platform.cli.errors import ActionGroup


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.people.admin_commands")
def admin() -> None:
    """Manage accounts: authors, reviewers, admins."""
