"""The commands of `namespace`."""

from typing import Any

import click

from vskill_client.destination import Caller
from vskill_client.output import UNKNOWN, print_table
from vskill_core.plural import counted
from vskill_platform.actions.people.namespace_policy import (
    CHANGE_VISIBILITY,
    MAKE_PUBLIC,
    PREVIEW_VISIBILITY,
    SET_QUOTAS,
    PreviewVisibility,
    VisibilityPreview,
)
from vskill_platform.actions.people.namespaces import (
    ADD_MEMBER,
    LEAVE_NAMESPACE,
    LIST_NAMESPACES,
    REMOVE_MEMBER,
    SHOW_NAMESPACE,
    NamespaceList,
    NamespaceView,
)
from vskill_platform.actions.people.visibility_preview import ReachChange, ReachPreview
from vskill_platform.cli.action_commands import ForetoldQuestion, command_for
from vskill_platform.cli.output import show_text_time
from vskill_platform.domain.people.namespace import Visibility

#: How many names a preview prints.
MOST_NAMES = 10


def show_list(found: NamespaceList) -> None:
    rows = [
        (
            one.name,
            _visibility(one.visibility, one.preparing),
            one.your_role.value if one.your_role else UNKNOWN,
            one.members,
        )
        for one in found.namespaces
    ]
    print_table(f"{len(rows)} namespaces", ("name", "visibility", "your role", "members"), rows)


def show_namespace(found: NamespaceView) -> None:
    click.echo(f"{found.name}: {_visibility(found.visibility, found.preparing)}")
    rows = [
        (one.member, one.role.value, one.repo or "everything", one.how, show_text_time(one.since))
        for one in found.members
    ]
    print_table(counted(len(rows), "member"), ("member", "role", "of", "how", "since (UTC)"), rows)
    if found.owner_by_name is not None:
        click.echo(f"{found.owner_by_name} owns the namespace because of its name.")
    if found.usage is not None:
        for what, used, quota in (
            ("skills", found.usage.skills, found.quotas.skills),
            ("bytes", found.usage.bytes, found.quotas.bytes),
            ("submissions this hour", found.usage.submissions, found.quotas.submissions_per_hour),
        ):
            click.echo(f"{what}: {used:,} of {'any number' if quota is None else format(quota, ',')}")
    click.echo("Reviewers of the registry see everything that waits here.")


def _visibility(visibility: Visibility | None, preparing: Visibility | None) -> str:
    shown = "unmanaged" if visibility is None else visibility.value
    return f"{shown}, being prepared for {preparing.value}" if preparing else shown


def show_preview(found: VisibilityPreview) -> None:
    now = "unmanaged" if found.visibility is None else found.visibility.value
    click.echo(f"{found.name} is {now}. As {found.to.value}:")
    show_reach(found.reach)
    if found.needs_reviewer:
        click.echo("Only reviewers and admins may do this.")


def show_reach(reach: ReachPreview) -> None:
    """What a change would hide and show."""
    told = False
    for readers, preview in (("the public", reach.public), ("other accounts", reach.accounts)):
        for verb, change in (("disappear", preview.disappears), ("appear", preview.appears)):
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


async def foretell_visibility(caller: Caller, given: dict[str, Any]) -> dict[str, Any]:
    request = PreviewVisibility(name=given["name"], to=Visibility(given["to"]))
    show_preview(await caller.call(PREVIEW_VISIBILITY, request))
    return {}


async def foretell_public(caller: Caller, given: dict[str, Any]) -> dict[str, Any]:
    return await foretell_visibility(caller, {**given, "to": "public"})


COMMANDS = (
    command_for(LIST_NAMESPACES, show_list),
    command_for(SHOW_NAMESPACE, show_namespace),
    command_for(ADD_MEMBER, show_namespace, arguments=("member", "role")),
    command_for(REMOVE_MEMBER, show_namespace, arguments=("member",)),
    command_for(
        LEAVE_NAMESPACE,
        lambda _: click.echo("You are no member by name any more."),
        confirm="Leave the namespace?",
    ),
    command_for(PREVIEW_VISIBILITY, show_preview, arguments=("to",)),
    command_for(
        CHANGE_VISIBILITY,
        show_namespace,
        arguments=("to",),
        confirm=ForetoldQuestion("Change who may read it?", foretell_visibility),
        about="It prints first what would disappear and appear.",
    ),
    command_for(
        MAKE_PUBLIC,
        show_namespace,
        confirm=ForetoldQuestion("Make it public?", foretell_public),
        about="It prints first what would appear.",
    ),
    command_for(SET_QUOTAS, show_namespace),
)
