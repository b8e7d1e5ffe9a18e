"""`completion`: the script that lets a shell complete commands, options, ids of submissions and names of skills."""

from contextlib import suppress

import click
from click.shell_completion import CompletionItem

from vskill_client.registries import remote_variables
from vskill_core.errors import PlatformError
from vskill_core.plain_text import plain_text
from vskill_platform.cli.connection import LocalDestination

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
    offered: list[tuple[str, str]] = []
    with suppress(PlatformError, OSError):
        offered = _submissions() if param.name == "submission_id" else _skills()
    return [CompletionItem(name, help=text) for name, text in offered if name.startswith(incomplete)]


def _skills() -> list[tuple[str, str]]:
    from vskill_platform.actions.skills.catalogue import LIST_SKILLS, ListSkills

    listed = LocalDestination().run(lambda caller: caller.call(LIST_SKILLS, ListSkills(limit=100)))
    return [(skill.name, plain_text(skill.description)[:80]) for skill in listed.skills]


def _submissions() -> list[tuple[str, str]]:
    from vskill_platform.actions.submissions.submission_lists import LIST, ListSubmissions

    listed = LocalDestination().run(lambda caller: caller.call(LIST, ListSubmissions(limit=MOST_OFFERED)))
    return [(card.id, f"{card.skill_name}, {card.state}") for card in listed.submissions]
