"""`completion`: the script that lets a shell complete commands, options, ids of submissions and names of skills."""

from collections.abc import Callable
from contextlib import suppress

import click
from click.shell_completion import CompletionItem

#: Submissions that a shell offers, the latest first.
MOST_OFFERED = 50


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(*, shell: str) -> None:
    """Print the script that lets a shell complete commands.

    In bash: `source <(vskill-platform completion bash)`.
    """
    from click.shell_completion import get_completion_class

    from vskill_platform.cli import cli

    kind = get_completion_class(shell)
    if kind is None:  # pragma: no cover - the choices are those that click has
        raise click.UsageError(f"{shell} is not supported")
    click.echo(kind(cli, {}, "vskill-platform", "_VSKILL_PLATFORM_COMPLETE").source())


def complete_submission(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of this machine's submissions; none for a registry elsewhere, or where the store cannot be read."""
    return _complete_locally(ctx, lambda: _local_ids(incomplete))


def complete_skill(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Full names of this machine's skills; none for a registry elsewhere, or where the store cannot be read."""
    return _complete_locally(ctx, lambda: _local_names(incomplete))


def _complete_locally(ctx: click.Context, offer: Callable[[], list[CompletionItem]]) -> list[CompletionItem]:
    from vskill_platform.domain.errors import PlatformError
    from vskill_platform.settings import remote_variables

    if ctx.find_root().params.get("registry") or remote_variables().registry:
        return []
    with suppress(PlatformError, OSError):
        return offer()
    return []


def _local_names(incomplete: str) -> list[CompletionItem]:
    from vskill_platform.actions.catalogue import LIST_SKILLS, ListSkills
    from vskill_platform.actions.principal import OPERATOR
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
    from vskill_platform.actions.submission_lists import LIST, ListSubmissions
    from vskill_platform.cli.process import run_in_env
    from vskill_platform.worker_context import require_env

    page = run_in_env(lambda: LIST(require_env(), OPERATOR, ListSubmissions(limit=MOST_OFFERED)))
    return [
        CompletionItem(card.id, help=f"{card.skill_name}, {card.state}")
        for card in page.submissions
        if card.id.startswith(incomplete)
    ]
