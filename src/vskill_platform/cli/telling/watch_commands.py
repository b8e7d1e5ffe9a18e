"""The commands of `watch`."""

from vskill_client.output import print_table
from vskill_platform.actions.telling import notifications
from vskill_platform.cli.action_commands import command_for


def show_watches(watches: notifications.WatchesAnswer) -> None:
    rows = [
        *(("skill", name) for name in watches.skills),
        *(("namespace", name) for name in watches.namespaces),
    ]
    print_table(f"{len(rows)} watched", ("what", "name"), rows)


COMMANDS = (
    command_for(notifications.ADD_WATCH, show_watches),
    command_for(notifications.LIST_WATCHES, show_watches),
    command_for(notifications.REMOVE_WATCH, show_watches),
)
