"""`webhook`: who is told of decisions, by signed requests."""

import click

from vskill_platform.cli.errors import PlatformGroup
from vskill_platform.cli.output import json_option, print_json, print_table, show_time
from vskill_platform.cli.process import OPERATOR, run_in_env

#: The names of `notifications.notices.NoticeType`, here so that `--help` loads nothing.
EVENTS = ("submission.decided", "skill.published", "skill.blocked")


@click.group(cls=PlatformGroup)
def webhook() -> None:
    """Tell other systems what is decided, by signed requests."""


@webhook.command("add")
@click.argument("url")
@click.option(
    "--event", "events", multiple=True, type=click.Choice(EVENTS), help="Only this event; repeatable."
)
@json_option
def add(*, url: str, events: tuple[str, ...], as_json: bool) -> None:
    """Deliver decisions to URL from now on; the secret that signs them is shown once."""
    from vskill_platform.notifications.subscriptions import subscribe

    hook = run_in_env(lambda: subscribe(url, events or EVENTS, by=OPERATOR))
    if as_json:
        print_json({"id": hook.id, "url": hook.url, "events": hook.events, "secret": hook.secret})
        return
    click.echo(f"Webhook {hook.id} will get {', '.join(hook.events)}.")
    click.echo(f"Its secret, shown only now: {hook.secret}")


@webhook.command("list")
@json_option
def list_hooks(*, as_json: bool) -> None:
    """List webhooks; secrets are not shown."""
    from vskill_platform.store.webhooks import list_webhooks

    hooks = run_in_env(list_webhooks)
    if as_json:
        print_json(
            [{"id": h.id, "url": h.url, "events": h.events, "created_at": h.created_at} for h in hooks]
        )
        return
    rows = [(hook.id, hook.url, ", ".join(hook.events), show_time(hook.created_at)) for hook in hooks]
    print_table(f"{len(hooks)} webhooks", ("id", "address", "events", "since (UTC)"), rows)


@webhook.command("remove")
@click.argument("webhook_id")
def remove(*, webhook_id: str) -> None:
    """Deliver nothing more to a webhook."""
    from vskill_platform.store.webhooks import remove_webhook

    run_in_env(lambda: remove_webhook(webhook_id, by=OPERATOR))
    click.echo(f"Webhook {webhook_id} was removed.")
