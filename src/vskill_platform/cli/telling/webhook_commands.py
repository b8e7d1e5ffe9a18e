"""The commands of `webhook`."""

from vskill_client.destination import Caller
from vskill_platform.actions.telling import webhooks
from vskill_platform.cli.action_commands import Given, command_for, table
from vskill_platform.notifications.notices import NoticeType


async def choose_all(_caller: Caller, given: Given) -> Given:
    chosen = tuple(NoticeType(event) for event in given["events"])
    return {**given, "events": chosen or tuple(NoticeType)}


COMMANDS = (
    command_for(
        webhooks.ADD_WEBHOOK,
        "Webhook {webhook.id} will get {webhook.events}.",
        "Its secret, shown only once: {secret}",
        arguments=("url",),
        fill=choose_all,
        optional=("events",),
    ),
    command_for(
        webhooks.LIST_WEBHOOKS,
        table(
            "{#webhooks} webhooks",
            "webhooks",
            *("id", ("address", "url"), "events", ("since (UTC)", "created_at")),
        ),
    ),
    command_for(webhooks.REMOVE_WEBHOOK, "It gets nothing more."),
)
