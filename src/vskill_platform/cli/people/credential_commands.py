"""The commands about credentials for private repositories."""

import click

from vskill_platform.actions.people import credentials
from vskill_platform.cli.action_commands import command_for, table, when

#: Asked for, so that it is in no history of a shell and in no list of processes.
_TOKEN = click.Option(["--token"], prompt="Token", hide_input=True, hidden=True)
_TABLE = (
    table(
        "{#credentials:credential} of {name}",
        "credentials",
        *("id", "address", "user", "by", ("added (UTC)", "created_at")),
    ),
    when("problem", "To add one: {problem}."),
)

COMMANDS = (
    command_for(credentials.LIST_CREDENTIALS, _TABLE),
    command_for(
        credentials.ADD_TOKEN,
        _TABLE,
        arguments=("repo_url",),
        about="The token is asked for.",
        options={"token": _TOKEN},
    ),
    command_for(credentials.REMOVE_CREDENTIAL, _TABLE),
)
