"""`owner`: claim a repository, prove it, hand it over, and see who controls what."""

import click

from vskill_platform.cli.errors import ActionGroup


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.people.owner_commands")
def owner() -> None:
    """Claim repositories, and hand them over.

    An owner may also withdraw versions and delete skills, with `skill`.

    On this machine, `--as ACCOUNT` before `owner` says who acts.
    """
