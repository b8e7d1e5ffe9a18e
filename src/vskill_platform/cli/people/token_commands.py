"""The commands of `token`, and how a new token is printed."""

from vskill_platform.actions.people import tokens
from vskill_platform.cli.action_commands import Part, command_for, table, when
from vskill_platform.cli.people.admin_commands import REASON

CREATED: Part = (
    "The token, shown only once: {token}",
    when(
        "details.namespace",
        "It may {details.scopes} in the namespace {details.namespace}, and expires {details.expires_at}.",
        "It may {details.scopes}, and expires {details.expires_at}.",
    ),
)
_TOKENS = table(
    "{#tokens:token}",
    "tokens",
    ("id", "details.id"),
    "account",
    ("name", "details.name"),
    ("scopes", "details.scopes"),
    ("namespace", "details.namespace"),
    ("expires (UTC)", "details.expires_at"),
    ("last used", "details.last_used_at"),
)

COMMANDS = (
    command_for(tokens.CREATE_TOKEN_FOR, CREATED),
    command_for(tokens.LIST_ALL_TOKENS, _TOKENS),
    command_for(tokens.REVOKE_TOKEN_OF, "The token '{details.name}' of {account} is revoked.", **REASON),
)
