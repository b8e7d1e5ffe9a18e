"""The commands about published skills: list and read them, withdraw versions and bring them back. A SKILL is a full
name (owner/repository/skill) or a short one that means exactly one skill."""

import click
import msgspec

from vskill_client.output import UNKNOWN, plain, print_table
from vskill_client.wire.findings import CapabilityView
from vskill_client.wire.skills import SkillState
from vskill_core.capability import CapabilityContext
from vskill_core.plural import counted
from vskill_platform.actions.recall.takedowns import RESTORE, TAKE_DOWN
from vskill_platform.actions.skills.catalogue import LIST_SKILLS, SkillsAnswer
from vskill_platform.actions.skills.names import RELEASE_NAME, ReleasedName
from vskill_platform.actions.skills.narrowing import NARROW_SKILL, WIDEN_SKILL, SkillReaders
from vskill_platform.actions.skills.skill_contents import LIST_FILES, FilesAnswer
from vskill_platform.actions.skills.versions import DELETE, SHOW_SKILL, UNYANK, YANK
from vskill_platform.actions.verdicts.skill_security import SECURITY, SecurityAnswer
from vskill_platform.cli.action_commands import command_for
from vskill_platform.cli.output import console
from vskill_platform.cli.process import run_in_env


def show_state(changed: SkillState) -> None:
    current = (
        f"version {changed.current_version} is current" if changed.current_version else "no version is live"
    )
    states = ", ".join(f"{one.version} {one.status}" for one in changed.versions)
    click.echo(f"{changed.skill}: {current} ({states})")


def show_skill(found: SkillState) -> None:
    click.echo(plain(f"{found.skill}: {found.description}"))
    rows = [
        (one.version, one.status, one.certification, one.published_at.replace("T", " "), one.reason)
        for one in found.versions
    ]
    title = f"current version: {found.current_version or UNKNOWN}"
    print_table(title, ("version", "status", "certification", "published (UTC)", "why"), rows)


def show_readers(changed: SkillReaders) -> None:
    narrowed = "as its namespace" if changed.narrowed is None else changed.narrowed.value
    click.echo(f"{changed.skill}: {narrowed}; its namespace is {changed.visibility.value}.")


def show_list(found: SkillsAnswer) -> None:
    rows = [
        (one.name, one.current_version, one.cert_tier, one.vskill_installs, one.description)
        for one in found.skills
    ]
    columns = ("skill", "version", "certification", "installs", "description")
    print_table(counted(len(rows), "skill"), columns, rows)
    if found.pagination.after is not None:
        click.echo(f"More: --after {found.pagination.after}")


def show_files(found: FilesAnswer) -> None:
    rows = [(one.path, one.mode, one.size, one.sha256) for one in found.files]
    print_table(f"{found.name} {found.version}", ("file", "mode", "bytes", "SHA-256"), rows)


def show_card(card: tuple[CapabilityView, ...] | None) -> None:
    """What acts; links are in the JSON."""
    rows = [
        (one.kind, one.value, f"{one.file}:{one.line}" if one.line else one.file, one.context)
        for one in card or ()
        if one.context != CapabilityContext.LINK
    ]
    if rows:
        print_table(
            "capability card (as far as our rules read it)", ("kind", "what", "where", "context"), rows
        )
    elif card is not None:
        click.echo("Our rules found no host, command, file, secret, install or lasting change in what runs.")


def show_released(found: ReleasedName) -> None:
    console().print(
        plain(f"{found.skill} no longer holds {found.released}. It is listed as {found.listed_as}.")
    )


def show_security(found: SecurityAnswer) -> None:
    click.echo(plain(f"{found.name} {found.version}: {found.overall_verdict}. {found.summary}"))
    rows = [(one.provider, one.status, one.finding_count, one.detail) for one in found.providers]
    print_table("analysers", ("analyser", "status", "findings", "detail"), rows)
    places = [
        (one.severity, one.kind, one.rule_id, f"{one.file}:{one.line}", one.why) for one in found.findings
    ]
    if places:
        print_table("findings", ("severity", "kind", "rule", "where", "why"), places)
    show_card(found.capabilities)
    if found.notes:
        notes = [(one.code, f"SKILL.md:{one.line}", f"{one.sentence} {one.fix}") for one in found.notes]
        print_table("notes on form", ("note", "where", "what to do"), notes)


@click.command("export")
def export() -> None:
    """Print every published skill as a line of JSON, sorted by name."""
    from vskill_client.wire.base import camel
    from vskill_platform.actions.principal import OPERATOR
    from vskill_platform.actions.skills.catalogue import enumerate_catalogue
    from vskill_platform.actions.visibility import resolve
    from vskill_platform.domain.skills.skill import PublishedSkillSummary

    async def enumerate_all() -> list[PublishedSkillSummary]:
        return await enumerate_catalogue(await resolve(OPERATOR))

    for found in run_in_env(enumerate_all):
        click.echo(msgspec.json.encode(camel(found)))


COMMANDS = (
    export,
    command_for(LIST_SKILLS, show_list),
    command_for(SHOW_SKILL, show_skill),
    command_for(LIST_FILES, show_files),
    command_for(SECURITY, show_security),
    command_for(YANK, show_state),
    command_for(UNYANK, show_state),
    command_for(TAKE_DOWN, show_state, arguments=("version",)),
    command_for(RESTORE, show_state, arguments=("version",)),
    command_for(NARROW_SKILL, show_readers, arguments=("to",)),
    command_for(WIDEN_SKILL, show_readers),
    command_for(RELEASE_NAME, show_released, arguments=("name",)),
    command_for(DELETE, show_state, confirm="Withdraw every version and end its submission?"),
)
