"""`search`: find published skills by words, on this machine or on a registry."""

from typing import Any, get_args

import click

from vskill_client.destination import run_with_caller, tell_registries
from vskill_client.output import json_option, print_json, print_table
from vskill_client.wire import skills
from vskill_core.capability import Lack, describe_needs
from vskill_core.plain_text import plain_text
from vskill_core.plural import counted

#: The fields that narrow a search, with the values that they take, if there are only a few, and their help.
_FILTERS = {
    "without": ((), f"Only what is without these, separated by commas: {', '.join(Lack)}."),
    "licence": ((), "Only this licence."),
    "category": ((), "Only this category."),
    "agent": ((), "Only skills for this agent."),
    "owner": ((), "Only skills of this owner."),
    "provenance": (get_args(skills.OwnerChoice), "Only what the owner of its repository submitted."),
    "min_installs": (get_args(skills.InstallsChoice), "Only what was installed at least this often."),
    "min_age": (get_args(skills.AgeChoice), "Only what was first published at least this many days ago."),
}


def _filter_options(command: Any) -> Any:
    for name, (values, text) in reversed(_FILTERS.items()):
        kind = click.Choice(values) if values else None
        command = click.option(f"--{name.replace('_', '-')}", name, type=kind, help=text)(command)
    return command


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="How many to show.")
@_filter_options
@json_option
def search(*, words: tuple[str, ...], limit: int, as_json: bool, **filters: Any) -> None:
    """Search published skills by words.

    Names and descriptions are searched, for any of the words in any form; the last word may be the beginning of
    one. Blocked and withdrawn skills come last.
    """
    asked = skills.SearchSkills(q=" ".join(words), limit=limit, **filters)
    found = run_with_caller(lambda caller: caller.call(skills.SEARCH_SKILLS, asked))
    if as_json:
        print_json(found)
    else:
        _show(found, asked.q)
    if not found.results:
        tell_registries()


def tell_facts(card: skills.SkillCard) -> str:
    """What tells a skill apart: why it cannot be installed, or what it needs, and its licence."""
    if card.is_blocked or card.is_withdrawn:
        return card.cert_tier.lower()
    needs = [text for text, _ in describe_needs(card.without)] or ["not read whole"]
    licence = "no licence" if card.licence == "none" else card.licence
    return ", ".join([*needs, *([licence] if licence else [])])


def _show(found: skills.SearchAnswer, words: str) -> None:
    if found.truncated and not found.results:
        click.echo("The search took too long. Use other words, or fewer.")
        return
    if not found.results:
        click.echo(f"No skill fits {words!r}. Try fewer words, the beginning of one, or fewer filters.")
        return
    if found.did_you_mean:
        click.echo(f"Did you mean: {found.did_you_mean}?")
    count = counted(found.total, "skill")
    rows = [
        (one.name, plain_text(one.description), tell_facts(one), one.vskill_installs) for one in found.results
    ]
    print_table(count, ("name", "description", "facts", "installs"), rows)
    if found.truncated:
        click.echo("More results; refine your search, or give a higher --limit.")
