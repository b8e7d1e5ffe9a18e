"""The commands about the repositories of published skills. A repository is named by its address."""

import click

from vskill_client.output import UNKNOWN, print_table
from vskill_core.plural import counted
from vskill_platform.actions.skills.repositories import (
    CHECK_REPOSITORY,
    LIST_REPOSITORIES,
    SHOW_REPOSITORY,
    CheckRequested,
    RepositoryHealth,
    RepositoryList,
)
from vskill_platform.cli.action_commands import command_for
from vskill_platform.cli.output import show_text_time


def show_repositories(found: RepositoryList) -> None:
    rows = [
        (one.url, one.status, show_text_time(one.checked_at), one.facts.licence or UNKNOWN, one.detail)
        for one in found.repositories
    ]
    columns = ("repository", "status", "checked (UTC)", "licence", "why")
    print_table(f"{len(rows)} repositories", columns, rows)
    if found.after is not None:
        click.echo(f"More: --after {found.after}")
    if found.skipped:
        click.echo(f"{counted(found.skipped, 'record')} could not be read; the log names them.", err=True)


def show_health(found: RepositoryHealth) -> None:
    facts = found.facts
    archived = "unknown: git does not tell" if facts.archived is None else str(facts.archived).lower()
    rows = [
        ("status", f"{found.status} since {show_text_time(found.status_since)}"),
        ("why", found.detail or UNKNOWN),
        ("checked", show_text_time(found.checked_at)),
        ("last reached", show_text_time(found.reached_at)),
        ("gone since", show_text_time(found.gone_since)),
        ("moved to", facts.moved_to or UNKNOWN),
        ("head", f"{facts.commit or UNKNOWN} (branch {facts.branch or 'unknown'})"),
        ("last commit", show_text_time(facts.committed_at)),
        ("licence", facts.licence or UNKNOWN),
        ("archived", archived),
    ]
    print_table(found.url, ("", ""), rows)


def show_requested(asked: CheckRequested) -> None:
    click.echo(f"Asked for check {asked.run} of {asked.repo}; 'repo health' shows what it finds.")


_BY_ADDRESS = ("repo_url",)

COMMANDS = (
    command_for(LIST_REPOSITORIES, show_repositories),
    command_for(SHOW_REPOSITORY, show_health, arguments=_BY_ADDRESS, metavars={"repo_url": "URL"}),
    command_for(CHECK_REPOSITORY, show_requested, arguments=_BY_ADDRESS, metavars={"repo_url": "URL"}),
)
