"""The commands of `watch`."""

from vskill_client.output import print_table
from vskill_platform.actions.telling.notifications import ADD_WATCH, LIST_WATCHES, REMOVE_WATCH, WatchesAnswer
from vskill_platform.cli.action_commands import command_for


def show_watches(found: WatchesAnswer) -> None:
    rows = [("skill", name) for name in found.skills] + [("namespace", name) for name in found.namespaces]
    print_table(f"{len(rows)} watched", ("what", "name"), rows)


COMMANDS = (
    command_for(ADD_WATCH, show_watches),
    command_for(LIST_WATCHES, show_watches),
    command_for(REMOVE_WATCH, show_watches),
)
