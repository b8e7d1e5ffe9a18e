"""The commands of `webhook`."""

from typing import Any

import click

from vskill_client.destination import Caller
from vskill_client.output import print_table
from vskill_platform.actions.telling.webhooks import (
    ADD_WEBHOOK,
    LIST_WEBHOOKS,
    REMOVE_WEBHOOK,
    NewWebhook,
    WebhooksAnswer,
)
from vskill_platform.cli.action_commands import command_for
from vskill_platform.cli.output import show_text_time
from vskill_platform.notifications.notices import NoticeType


async def choose_all(_caller: Caller, given: dict[str, Any]) -> dict[str, Any]:
    """Every event, where none is named."""
    chosen = tuple(NoticeType(event) for event in given["events"])
    return {**given, "events": chosen or tuple(NoticeType)}


def show_added(made: NewWebhook) -> None:
    click.echo(f"Webhook {made.webhook.id} will get {', '.join(made.webhook.events)}.")
    click.echo(f"Its secret, shown only once: {made.secret}")


def show_all(found: WebhooksAnswer) -> None:
    rows = [
        (one.id, one.url, ", ".join(one.events), show_text_time(one.created_at)) for one in found.webhooks
    ]
    print_table(f"{len(rows)} webhooks", ("id", "address", "events", "since (UTC)"), rows)


COMMANDS = (
    command_for(ADD_WEBHOOK, show_added, arguments=("url",), fill=choose_all, optional=("events",)),
    command_for(LIST_WEBHOOKS, show_all),
    command_for(REMOVE_WEBHOOK, lambda _: click.echo("It gets nothing more.")),
)
