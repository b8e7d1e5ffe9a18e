"""The commands about published skills: list and read them, withdraw versions and bring them back. A SKILL is a full
name (owner/repository/skill) or a short one that means exactly one skill."""

import click
import msgspec

from vskill_client.search import tell_facts
from vskill_client.wire.skills import CapabilityView, SkillState
from vskill_core.capability import CapabilityContext
from vskill_platform.actions.recall import takedowns
from vskill_platform.actions.skills import catalogue, skill_names, versions
from vskill_platform.actions.verdicts import skill_security
from vskill_platform.cli.action_commands import CommandQuestion, Part, command_for, table, when
from vskill_platform.cli.process import run_in_env


def show_state(changed: SkillState) -> None:
    current = (
        f"version {changed.current_version} is current" if changed.current_version else "no version is live"
    )
    states = ", ".join(f"{one.version} {one.status}" for one in changed.versions)
    click.echo(f"{changed.skill}: {current} ({states})")


def acting_capabilities(report: skill_security.SecurityAnswer) -> list[CapabilityView]:
    """What acts; links are in the JSON."""
    return [one for one in report.capabilities or () if one.context != CapabilityContext.LINK]


def _tell_place(one: CapabilityView) -> str:
    return f"{one.file}:{one.line}" if one.line else one.file


_READERS = when(
    "narrowed",
    "{skill}: {narrowed}; its namespace is {visibility}.",
    "{skill}: as its namespace; its namespace is {visibility}.",
)
_LIST = table(
    "{#skills:skill}",
    "skills",
    ("skill", "name"),
    ("version", "current_version"),
    ("facts", tell_facts),
    ("installs", "vskill_installs"),
    "description",
)
_SKILL: Part = (
    "{skill}: {description}",
    table(
        "current version: {current_version}",
        "versions",
        *("version", "status", "certification", ("published (UTC)", "published_at"), ("why", "reason")),
    ),
)
_CAPABILITIES = table(
    "capability card (as far as our rules read it)",
    acting_capabilities,
    "kind",
    ("what", "value"),
    ("where", _tell_place),
    "context",
    ("used for", lambda one: ", ".join(one.uses)),
)
_SECURITY: Part = (
    "{name} {version}: {overall_verdict}. {summary}",
    table(
        "analysers", "providers", ("analyser", "provider"), "status", ("findings", "finding_count"), "detail"
    ),
    when(
        "findings",
        table(
            "findings", "findings", "severity", "kind", ("rule", "rule_id"), ("where", "{file}:{line}"), "why"
        ),
    ),
    when(
        acting_capabilities,
        _CAPABILITIES,
        when(
            lambda report: report.capabilities is not None,
            "Our rules found no host, command, file, secret, install or lasting change in what runs.",
        ),
    ),
    when(
        "notes",
        table(
            "notes on form",
            "notes",
            *(("note", "code"), ("where", "SKILL.md:{line}"), ("what to do", "{sentence} {fix}")),
        ),
    ),
)


_COMPARISON: Part = (
    table(
        "{a.name} (a) and {b.name} (b)",
        "facts",
        ("differs", lambda one: "*" if one.differs else ""),
        *("fact", "a", "b"),
    ),
    when(
        "capabilities",
        tuple(
            when(
                f"capabilities.{side}",
                table(
                    f"only {name} can",
                    f"capabilities.{side}",
                    "kind",
                    ("what", "value"),
                    ("where", _tell_place),
                ),
            )
            for name, side in (("a", "removed"), ("b", "added"))
        ),
    ),
)


@click.command("export")
def export() -> None:
    """Print every published skill as a line of JSON, sorted by name."""
    from vskill_client.wire.base import camel
    from vskill_platform.actions.principal import OPERATOR, resolve
    from vskill_platform.domain.skills.skill import PublishedSkillSummary

    async def enumerate_all() -> list[PublishedSkillSummary]:
        return await catalogue.enumerate_catalogue(await resolve(OPERATOR))

    for summary in run_in_env(enumerate_all):
        click.echo(msgspec.json.encode(camel(summary)))


COMMANDS = (
    export,
    command_for(catalogue.LIST_SKILLS, _LIST),
    command_for(versions.SHOW_SKILL, _SKILL),
    command_for(
        skill_names.LIST_FILES,
        table(
            "{name} {version}", "files", ("file", "path"), "mode", ("bytes", "size"), ("SHA-256", "sha256")
        ),
    ),
    command_for(skill_security.SECURITY, _SECURITY),
    command_for(skill_security.COMPARE, _COMPARISON, arguments=("a", "b")),
    command_for(versions.YANK, show_state),
    command_for(versions.UNYANK, show_state),
    command_for(takedowns.TAKE_DOWN, show_state, arguments=("version",)),
    command_for(takedowns.RESTORE, show_state, arguments=("version",)),
    command_for(versions.NARROW_SKILL, _READERS, arguments=("to",)),
    command_for(versions.WIDEN_SKILL, _READERS),
    command_for(
        versions.RELEASE_NAME,
        "{skill} no longer holds {released}. It is listed as {listed_as}.",
        arguments=("name",),
    ),
    command_for(
        versions.DELETE, show_state, confirm=CommandQuestion("Withdraw every version and end its submission?")
    ),
)
