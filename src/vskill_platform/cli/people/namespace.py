"""`namespace`: who belongs to a namespace, who may read it, and what it may hold."""

import click

from vskill_platform.cli.errors import ActionGroup


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.people.namespace_commands")
def namespace() -> None:
    """Manage namespaces: their members, who may read them, and their quotas.

    A namespace is the first part of a skill's full name, such as `acme` or `upload~mia`.

    On this machine, `--as ACCOUNT` before `namespace` says who acts.
    """
