"""`repo`: how the repositories of published skills are doing, and a check on demand."""

import click

from vskill_platform.cli.errors import PlatformGroup
from vskill_platform.cli.output import UNKNOWN, json_option, print_json, print_table, show_time
from vskill_platform.cli.process import run_in_env

#: The names of `store.repo_health.Reach`, here so that `--help` loads nothing.
STATUSES = ("reachable", "gone", "unavailable")


@click.group(cls=PlatformGroup)
def repo() -> None:
    """See whether the repositories of published skills are still there."""


@repo.command("list")
@click.option("--status", type=click.Choice(STATUSES), help="Only these.")
@json_option
def list_repos(*, status: str | None, as_json: bool) -> None:
    """List repositories as their last check found them."""
    from vskill_platform.store.repo_health import Reach, RepoHealth, list_health

    wanted = None if status is None else Reach(status)

    async def read() -> list[RepoHealth]:
        page = await list_health(wanted)
        found = list(page.items)
        while page.after is not None:
            page = await list_health(wanted, after=page.after)
            found += page.items
        return found

    found = run_in_env(read)
    if as_json:
        print_json(found)
        return
    rows = [
        (one.url, one.status.value, show_time(one.checked_at), one.facts.licence or UNKNOWN, one.detail)
        for one in found
    ]
    print_table(
        f"{len(rows)} repositories", ("repository", "status", "checked (UTC)", "licence", "why"), rows
    )


@repo.command("health")
@click.argument("url")
@json_option
def health(*, url: str, as_json: bool) -> None:
    """Show what the last check of the repository at URL found."""
    from vskill_platform.domain.identity import normalise
    from vskill_platform.store.repo_health import get_health

    found = run_in_env(lambda: get_health(normalise(url)))
    if as_json:
        print_json(found)
        return
    facts = found.facts
    archived = "unknown: git does not tell" if facts.archived is None else str(facts.archived).lower()
    rows = [
        ("status", f"{found.status.value} since {show_time(found.status_since)}"),
        ("why", found.detail or UNKNOWN),
        ("checked", show_time(found.checked_at)),
        ("last reached", show_time(found.reached_at)),
        ("gone since", show_time(found.gone_since)),
        ("moved to", facts.moved_to or UNKNOWN),
        ("head", f"{facts.commit or UNKNOWN} ({facts.branch or 'branch not told'})"),
        ("last commit", show_time(facts.committed_at)),
        ("licence", facts.licence or UNKNOWN),
        ("archived", archived),
    ]
    print_table(found.url, ("", ""), rows)


@repo.command("check")
@click.argument("url")
def check(*, url: str) -> None:
    """Have the repository at URL checked as soon as a worker is free; a new commit starts new runs."""
    from vskill_platform.domain.identity import normalise
    from vskill_platform.repo_check import ask_for_check

    task = run_in_env(lambda: ask_for_check(normalise(url)))
    click.echo(f"Asked for check {task.run} of {task.id}; 'repo health {url}' shows what it finds.")
