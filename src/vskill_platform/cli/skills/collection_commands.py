"""The commands of `collection`."""

from vskill_platform.actions.skills import collections
from vskill_platform.cli.action_commands import command_for, table

_SIZE = "{name} has {#skills:skill}."

COMMANDS = (
    command_for(
        collections.CREATE_COLLECTION,
        "The collection {name} is at /collections/{name}/marketplace.json.",
        arguments=("name",),
    ),
    command_for(collections.ADD_SKILLS, _SIZE, arguments=("skills",)),
    command_for(collections.REMOVE_SKILLS, _SIZE, arguments=("skills",)),
    command_for(
        collections.LIST_COLLECTIONS,
        table(
            "{#collections} collections",
            "collections",
            *("name", "title", "skills", ("changed (UTC)", "updated_at")),
        ),
    ),
    command_for(collections.DELETE_COLLECTION, "The collection is deleted."),
)
