"""The commands of `collection`."""

import click

from vskill_client.output import print_table
from vskill_core.plural import counted
from vskill_platform.actions.skills.collections import (
    ADD_SKILLS,
    CREATE_COLLECTION,
    DELETE_COLLECTION,
    LIST_COLLECTIONS,
    REMOVE_SKILLS,
    CollectionsAnswer,
    CollectionView,
)
from vskill_platform.cli.action_commands import command_for
from vskill_platform.cli.output import show_text_time


def show_created(made: CollectionView) -> None:
    click.echo(f"The collection {made.name} is at /collections/{made.name}/marketplace.json.")


def show_size(changed: CollectionView) -> None:
    click.echo(f"{changed.name} has {counted(len(changed.skills), 'skill')}.")


def show_all(found: CollectionsAnswer) -> None:
    rows = [
        (one.name, one.title, "\n".join(one.skills), show_text_time(one.updated_at))
        for one in found.collections
    ]
    print_table(f"{len(rows)} collections", ("name", "title", "skills", "changed (UTC)"), rows)
    if found.unreadable:
        click.echo(f"{counted(found.unreadable, 'record')} could not be read; the log names them.", err=True)


COMMANDS = (
    command_for(CREATE_COLLECTION, show_created, arguments=("name",)),
    command_for(ADD_SKILLS, show_size, arguments=("skills",)),
    command_for(REMOVE_SKILLS, show_size, arguments=("skills",)),
    command_for(LIST_COLLECTIONS, show_all),
    command_for(DELETE_COLLECTION, lambda _: click.echo("The collection is deleted.")),
)
