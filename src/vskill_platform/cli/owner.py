"""`owner`: claim a repository, prove it, hand it over, and see who controls what."""

import click

from vskill_platform.cli.errors import ActionGroup


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.owner_commands")
def owner() -> None:
    """Claim repositories: an owner may withdraw versions, delete skills and hand over.

    On this machine, `--as ACCOUNT` before `owner` says who acts.
    """
