"""`collection`: named lists of skills that an organisation is offered as a marketplace of its own."""

import click

from vskill_platform.cli.errors import PlatformGroup
from vskill_platform.cli.output import json_option, print_json, print_table, show_time
from vskill_platform.cli.process import OPERATOR, run_in_env

reason_option = click.option("--reason", required=True, help="Why; kept in the audit.")


@click.group(cls=PlatformGroup)
def collection() -> None:
    """Curate collections of verified skills; each has an address for Claude Code."""


@collection.command("create")
@click.argument("name")
@click.option("--title", default="", help="What people read instead of the name.")
@click.option("--description", default="", help="What it is for.")
@reason_option
def create(*, name: str, title: str, description: str, reason: str) -> None:
    """Make an empty collection NAME: lower-case words with single hyphens."""
    from vskill_platform.store.collections import create_collection

    run_in_env(
        lambda: create_collection(name, title=title, description=description, by=OPERATOR, reason=reason)
    )
    click.echo(f"The collection {name} is at /collections/{name}/marketplace.json.")


@collection.command("add")
@click.argument("name")
@click.argument("skills", nargs=-1, required=True)
@reason_option
def add(*, name: str, skills: tuple[str, ...], reason: str) -> None:
    """Add SKILLS, by full or flat name, to the collection NAME."""
    from vskill_platform.store.collections import add_skills

    changed = run_in_env(lambda: add_skills(name, skills, by=OPERATOR, reason=reason))
    click.echo(f"{name} has {len(changed.skills)} skills.")


@collection.command("remove")
@click.argument("name")
@click.argument("skills", nargs=-1, required=True)
@reason_option
def remove(*, name: str, skills: tuple[str, ...], reason: str) -> None:
    """Remove SKILLS, by full name, from the collection NAME."""
    from vskill_platform.store.collections import remove_skills

    changed = run_in_env(lambda: remove_skills(name, skills, by=OPERATOR, reason=reason))
    click.echo(f"{name} has {len(changed.skills)} skills.")


@collection.command("list")
@json_option
def list_all(*, as_json: bool) -> None:
    """List collections with their skills."""
    from vskill_platform.store.collections import list_collections

    page = run_in_env(list_collections)
    if as_json:
        print_json(list(page.items))
        return
    rows = [(one.name, one.title, "\n".join(one.skills), show_time(one.updated_at)) for one in page.items]
    print_table(f"{len(page.items)} collections", ("name", "title", "skills", "changed (UTC)"), rows)
    if page.skipped:
        click.echo(f"{page.skipped} records could not be read; the log names them.", err=True)


@collection.command("delete")
@click.argument("name")
@reason_option
def delete(*, name: str, reason: str) -> None:
    """Delete the collection NAME; its skills stay as they are."""
    from vskill_platform.store.collections import delete_collection

    run_in_env(lambda: delete_collection(name, by=OPERATOR, reason=reason))
    click.echo(f"The collection {name} is gone.")
