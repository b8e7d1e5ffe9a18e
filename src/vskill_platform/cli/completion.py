"""`completion`: the script that lets a shell complete commands, options and ids of submissions."""

from contextlib import suppress

import click
from click.shell_completion import CompletionItem

#: Submissions that a shell offers, the latest first.
MOST_OFFERED = 50


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(*, shell: str) -> None:
    """Print what a shell needs to complete commands: `source <(vskill-platform completion bash)`."""
    from click.shell_completion import get_completion_class

    from vskill_platform.cli import cli

    kind = get_completion_class(shell)
    if kind is None:  # pragma: no cover - the choices are those that click has
        raise click.UsageError(f"{shell} is not supported")
    click.echo(kind(cli, {}, "vskill-platform", "_VSKILL_PLATFORM_COMPLETE").source())


def complete_submission(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of this machine's submissions; none for a registry elsewhere, or where the store cannot be read."""
    from vskill_platform.domain.errors import PlatformError

    if ctx.find_root().params.get("registry"):
        return []
    with suppress(PlatformError, OSError):
        return _local_ids(incomplete)
    return []


def _local_ids(incomplete: str) -> list[CompletionItem]:
    from vskill_platform.cli.process import run_in_env
    from vskill_platform.submission_store import list_submissions

    page = run_in_env(lambda: list_submissions(limit=MOST_OFFERED))
    return [
        CompletionItem(record.id, help=f"{record.skill_name}, {record.state}")
        for record in page.items
        if record.id.startswith(incomplete)
    ]
