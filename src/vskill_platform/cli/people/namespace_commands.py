"""The commands of `namespace`."""

import click

from vskill_client.destination import Caller
from vskill_core.plural import counted
from vskill_platform.actions.people import namespace_policy, namespaces
from vskill_platform.actions.people.access import AccessPreview
from vskill_platform.actions.people.namespace_policy import ReachChange
from vskill_platform.cli import action_commands
from vskill_platform.domain.people.namespace import Visibility

#: How many names a preview prints.
MOST_NAMES = 10


def describe_visibility(namespace: namespaces.NamespaceView | namespaces.NamespaceSummary) -> str:
    shown = namespace.visibility or "unmanaged"
    return f"{shown}, being prepared for {namespace.preparing}" if namespace.preparing else shown


def show_usage(namespace: namespaces.NamespaceView) -> None:
    if namespace.usage is not None:
        for what, used, quota in (
            ("skills", namespace.usage.skills, namespace.quotas.skills),
            ("bytes", namespace.usage.bytes, namespace.quotas.bytes),
            ("submissions this hour", namespace.usage.submissions, namespace.quotas.submissions_per_hour),
        ):
            click.echo(f"{what}: {used:,} of {'any number' if quota is None else format(quota, ',')}")


def show_reach(preview: namespace_policy.VisibilityPreview | AccessPreview) -> None:
    told, reach = False, preview.reach
    for readers, theirs in (("the public", reach.public), ("other accounts", reach.accounts)):
        for verb, change in (("disappear", theirs.disappears), ("appear", theirs.appears)):
            if change.skills or change.submissions:
                told = True
                _show_change(readers, verb, change)
    if not told:
        click.echo("Nothing changes for people who are not members.")


def _show_change(readers: str, verb: str, change: ReachChange) -> None:
    click.echo(
        f"{counted(change.skills, 'skill')} ({change.in_collections} of them in collections) and "
        f"{counted(change.submissions, 'submission')} would {verb} for {readers}."
    )
    for name in change.names[:MOST_NAMES]:
        click.echo(f"  {name}")
    if change.skills > MOST_NAMES:
        click.echo(f"  and {change.skills - MOST_NAMES} more")


_NAMESPACE: action_commands.Part = (
    lambda namespace: click.echo(f"{namespace.name}: {describe_visibility(namespace)}"),
    action_commands.table(
        "{#members:member}",
        "members",
        *(
            "member",
            "role",
            ("of", lambda member: member.repo or "everything"),
            "how",
            ("since (UTC)", "since"),
        ),
    ),
    action_commands.when("owner_by_name", "{owner_by_name} owns the namespace because of its name."),
    show_usage,
    "Who decides what waits here: {review}. Reviewers of the registry see all of it.",
    action_commands.when("kept_to_team", "For its team until a reviewer agrees: {kept_to_team}"),
)
_PREVIEW: action_commands.Part = (
    action_commands.when("visibility", "{name} is {visibility}. As {to}:", "{name} is unmanaged. As {to}:"),
    show_reach,
    action_commands.when("needs_reviewer", "Only reviewers and admins may do this."),
)


async def foretell_visibility(caller: Caller, given: action_commands.Given) -> action_commands.Given:
    request = namespace_policy.PreviewVisibility(name=given["name"], to=Visibility(given["to"]))
    action_commands.show_answer(await caller.call(namespace_policy.PREVIEW_VISIBILITY, request), _PREVIEW)
    return {}


async def foretell_public(caller: Caller, given: action_commands.Given) -> action_commands.Given:
    return await foretell_visibility(caller, {**given, "to": "public"})


COMMANDS = (
    action_commands.command_for(
        namespaces.LIST_NAMESPACES,
        action_commands.table(
            "{#namespaces} namespaces",
            "namespaces",
            *(
                "name",
                ("visibility", describe_visibility),
                ("your role", action_commands.known("your_role")),
                "members",
                "review",
            ),
        ),
    ),
    action_commands.command_for(namespaces.SHOW_NAMESPACE, _NAMESPACE),
    action_commands.command_for(namespaces.ADD_MEMBER, _NAMESPACE, arguments=("member", "role")),
    action_commands.command_for(
        namespaces.HAND_OVER,
        _NAMESPACE,
        arguments=("to",),
        confirm=action_commands.CommandQuestion("Hand it over? Its owners so far own it no more."),
    ),
    action_commands.command_for(namespaces.REMOVE_MEMBER, _NAMESPACE, arguments=("member",)),
    action_commands.command_for(
        namespaces.LEAVE_NAMESPACE,
        "You are no member by name any more.",
        confirm=action_commands.CommandQuestion("Leave the namespace?"),
    ),
    action_commands.command_for(namespace_policy.PREVIEW_VISIBILITY, _PREVIEW, arguments=("to",)),
    action_commands.command_for(
        namespace_policy.CHANGE_VISIBILITY,
        _NAMESPACE,
        arguments=("to",),
        confirm=action_commands.CommandQuestion("Change who may read it?", foretell_visibility),
        about="It prints first what would disappear and appear.",
    ),
    action_commands.command_for(
        namespace_policy.MAKE_PUBLIC,
        _NAMESPACE,
        confirm=action_commands.CommandQuestion("Make it public?", foretell_public),
        about="It prints first what would appear.",
    ),
    action_commands.command_for(namespace_policy.SET_REVIEWERS, _NAMESPACE, arguments=("to",)),
    action_commands.command_for(namespace_policy.SET_QUOTAS, _NAMESPACE),
)
