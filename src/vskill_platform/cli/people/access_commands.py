"""The commands of `access`."""

from vskill_client.destination import Caller
from vskill_platform.actions.people import access
from vskill_platform.cli import action_commands
from vskill_platform.cli.people.namespace_commands import show_reach
from vskill_platform.domain.people.namespace import RegistryMode

_SIGN_IN = action_commands.when("github_sign_in", "{github_sign_in}")
_DIRECTORY = action_commands.when(
    "scim_since",
    "The directory of {name} has a SCIM token since {scim_since}, last used {scim_last_used_at}.",
)
_ACCESS: action_commands.Part = (
    "The registry is {mode}. Who may submit: {submitters}. Namespaces that review themselves: {own_review}.",
    _SIGN_IN,
    action_commands.each("issuers", _DIRECTORY),
)
_PREVIEW: action_commands.Part = ("The registry is {mode}. As {to}:", show_reach, _SIGN_IN)


async def foretell(caller: Caller, given: action_commands.Given) -> action_commands.Given:
    if given["mode"] is not None:
        wanted = access.PreviewAccess(mode=RegistryMode(given["mode"]))
        action_commands.show_answer(await caller.call(access.PREVIEW_ACCESS, wanted), _PREVIEW)
    return {}


COMMANDS = (
    action_commands.command_for(access.SHOW_ACCESS, _ACCESS),
    action_commands.command_for(access.PREVIEW_ACCESS, _PREVIEW, arguments=("mode",)),
    action_commands.command_for(
        access.CHANGE_ACCESS,
        _ACCESS,
        confirm=action_commands.CommandQuestion("Change who may use the registry?", foretell),
        about="It prints first what would disappear and appear.",
    ),
    action_commands.command_for(
        access.MAKE_SCIM_TOKEN,
        "The directory of {issuer} sends its people to {address} with this token, which is shown once:",
        "{token}",
        arguments=("issuer",),
    ),
    action_commands.command_for(
        access.REMOVE_SCIM_TOKEN,
        "The directory of {issuer} has no access any more.",
        arguments=("issuer",),
    ),
)
