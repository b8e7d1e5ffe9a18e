"""The commands about credentials for private repositories."""

import click

from vskill_platform.actions.people import credentials
from vskill_platform.actions.people.credentials import CredentialList, SourceCredentialView
from vskill_platform.cli.action_commands import command_for, each, table, when

#: Asked for, so that it is in no history of a shell and in no list of processes.
_TOKEN = click.Option(["--token"], prompt="Token", hide_input=True, hidden=True)


def _kind_of(one: SourceCredentialView) -> str:
    return "deploy key" if one.public_key else "token"


def _deploy_keys(found: CredentialList) -> list[SourceCredentialView]:
    return [one for one in found.credentials if one.public_key]


_TABLE = (
    table(
        "{#credentials:credential} of {name}",
        "credentials",
        *("id", "address", ("kind", _kind_of), "user", "by", ("added (UTC)", "created_at")),
    ),
    each(_deploy_keys, "Public half of {id}: {public_key}", "Host key of {id}: {host_keys}"),
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
    command_for(
        credentials.ADD_KEY,
        _TABLE,
        arguments=("repo_url",),
        about="Add the public half, which is printed, to the repository at its forge, to read only.",
    ),
    command_for(credentials.SET_HOST_KEY, _TABLE),
    command_for(credentials.REMOVE_CREDENTIAL, _TABLE),
)
