"""`completion`: the script that lets a shell complete commands, options, ids of submissions and names of skills."""

from contextlib import suppress

import click
from click.shell_completion import CompletionItem

from vskill_client.registries import remote_variables
from vskill_core.errors import PlatformError

#: Submissions that a shell offers, the latest first.
MOST_OFFERED = 50


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, *, shell: str) -> None:
    """Print the script that lets a shell complete commands.

    In bash: `source <(vskill-platform completion bash)`.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:  # pragma: no cover - the choices are those that click has
        raise click.UsageError(f"{shell} is not supported")
    click.echo(kind(ctx.find_root().command, {}, "vskill-platform", "_VSKILL_PLATFORM_COMPLETE").source())


def offer(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of this machine's submissions, or full names of its skills; none for a registry elsewhere, or where the store
    cannot be read."""
    if ctx.find_root().params.get("registry") or remote_variables().registry:
        return []
    with suppress(PlatformError, OSError):
        return _local_ids(incomplete) if param.name == "submission_id" else _local_names(incomplete)
    return []


def _local_names(incomplete: str) -> list[CompletionItem]:
    from vskill_platform.actions.principal import OPERATOR
    from vskill_platform.actions.skills.catalogue import LIST_SKILLS, ListSkills
    from vskill_platform.cli.process import run_in_env
    from vskill_platform.worker_context import require_env

    found = run_in_env(lambda: LIST_SKILLS(require_env(), OPERATOR, ListSkills(limit=100)))
    return [
        CompletionItem(one.name, help=one.description[:80])
        for one in found.skills
        if one.name.startswith(incomplete)
    ]


def _local_ids(incomplete: str) -> list[CompletionItem]:
    from vskill_platform.actions.principal import OPERATOR
    from vskill_platform.actions.submissions.submission_lists import LIST, ListSubmissions
    from vskill_platform.cli.process import run_in_env
    from vskill_platform.worker_context import require_env

    page = run_in_env(lambda: LIST(require_env(), OPERATOR, ListSubmissions(limit=MOST_OFFERED)))
    return [
        CompletionItem(card.id, help=f"{card.skill_name}, {card.state}")
        for card in page.submissions
        if card.id.startswith(incomplete)
    ]
