"""`completion`: the script that lets a shell complete commands and options of this executable."""

import click


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
