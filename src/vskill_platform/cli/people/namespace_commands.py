"""The commands of `namespace`."""

import click

from vskill_client.destination import Caller
from vskill_core.plural import counted
from vskill_platform.actions.people import namespace_policy, namespaces
from vskill_platform.actions.people.access import AccessPreview
from vskill_platform.actions.people.namespace_policy import ReachChange
from vskill_platform.cli.action_commands import (
    CommandQuestion,
    Given,
    Part,
    command_for,
    known,
    show_answer,
    table,
    when,
)
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


_NAMESPACE: Part = (
    lambda namespace: click.echo(f"{namespace.name}: {describe_visibility(namespace)}"),
    table(
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
    when("owner_by_name", "{owner_by_name} owns the namespace because of its name."),
    show_usage,
    "Who decides what waits here: {review}. Reviewers of the registry see all of it.",
    when("kept_to_team", "For its team until a reviewer agrees: {kept_to_team}"),
)
_PREVIEW: Part = (
    when("visibility", "{name} is {visibility}. As {to}:", "{name} is unmanaged. As {to}:"),
    show_reach,
    when("needs_reviewer", "Only reviewers and admins may do this."),
)


async def foretell_visibility(caller: Caller, given: Given) -> Given:
    request = namespace_policy.PreviewVisibility(name=given["name"], to=Visibility(given["to"]))
    show_answer(await caller.call(namespace_policy.PREVIEW_VISIBILITY, request), _PREVIEW)
    return {}


async def foretell_public(caller: Caller, given: Given) -> Given:
    return await foretell_visibility(caller, {**given, "to": "public"})


COMMANDS = (
    command_for(
        namespaces.LIST_NAMESPACES,
        table(
            "{#namespaces} namespaces",
            "namespaces",
            *(
                "name",
                ("visibility", describe_visibility),
                ("your role", known("your_role")),
                "members",
                "review",
            ),
        ),
    ),
    command_for(namespaces.SHOW_NAMESPACE, _NAMESPACE),
    command_for(namespaces.ADD_MEMBER, _NAMESPACE, arguments=("member", "role")),
    command_for(
        namespaces.HAND_OVER,
        _NAMESPACE,
        arguments=("to",),
        confirm=CommandQuestion("Hand it over? Its owners so far own it no more."),
    ),
    command_for(namespaces.REMOVE_MEMBER, _NAMESPACE, arguments=("member",)),
    command_for(
        namespaces.LEAVE_NAMESPACE,
        "You are no member by name any more.",
        confirm=CommandQuestion("Leave the namespace?"),
    ),
    command_for(namespace_policy.PREVIEW_VISIBILITY, _PREVIEW, arguments=("to",)),
    command_for(
        namespace_policy.CHANGE_VISIBILITY,
        _NAMESPACE,
        arguments=("to",),
        confirm=CommandQuestion("Change who may read it?", foretell_visibility),
        about="It prints first what would disappear and appear.",
    ),
    command_for(
        namespace_policy.MAKE_PUBLIC,
        _NAMESPACE,
        confirm=CommandQuestion("Make it public?", foretell_public),
        about="It prints first what would appear.",
    ),
    command_for(namespace_policy.SET_REVIEWERS, _NAMESPACE, arguments=("to",)),
    command_for(namespace_policy.SET_QUOTAS, _NAMESPACE),
)
