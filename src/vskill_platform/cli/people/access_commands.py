"""The commands of `access`."""

from vskill_client.destination import Caller
from vskill_platform.actions.people import access
from vskill_platform.cli.action_commands import (
    CommandQuestion,
    Given,
    Part,
    command_for,
    each,
    show_answer,
    when,
)
from vskill_platform.cli.people.namespace_commands import show_reach
from vskill_platform.domain.people.namespace import RegistryMode

_SIGN_IN = when("github_sign_in", "{github_sign_in}")
_DIRECTORY = when(
    "scim_since",
    "The directory of {name} has a SCIM token since {scim_since}, last used {scim_last_used_at}.",
)
_ACCESS: Part = (
    "The registry is {mode}. Who may submit: {submitters}. Namespaces that review themselves: {own_review}.",
    _SIGN_IN,
    each("issuers", _DIRECTORY),
)
_PREVIEW: Part = ("The registry is {mode}. As {to}:", show_reach, _SIGN_IN)


async def foretell(caller: Caller, given: Given) -> Given:
    if given["mode"] is not None:
        wanted = access.PreviewAccess(mode=RegistryMode(given["mode"]))
        show_answer(await caller.call(access.PREVIEW_ACCESS, wanted), _PREVIEW)
    return {}


COMMANDS = (
    command_for(access.SHOW_ACCESS, _ACCESS),
    command_for(access.PREVIEW_ACCESS, _PREVIEW, arguments=("mode",)),
    command_for(
        access.CHANGE_ACCESS,
        _ACCESS,
        confirm=CommandQuestion("Change who may use the registry?", foretell),
        about="It prints first what would disappear and appear.",
    ),
    command_for(
        access.MAKE_SCIM_TOKEN,
        "The directory of {issuer} sends its people to {address} with this token, which is shown once:",
        "{token}",
        arguments=("issuer",),
    ),
    command_for(
        access.REMOVE_SCIM_TOKEN,
        "The directory of {issuer} has no access any more.",
        arguments=("issuer",),
    ),
)
