"""`review`: what a reviewer decides, and `block`: what nobody may publish. Each goes through the store's one function
for it, with the reason in the history."""

import click

from vskill_platform.cli.errors import ActionGroup, PlatformGroup
from vskill_platform.cli.output import json_option, print_json, print_table, show_time
from vskill_platform.cli.process import OPERATOR, run_in_env

_reason = click.option("--reason", required=True, help="Why; shown in the history.")


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.review_commands")
def review() -> None:
    """Decide about submissions that wait for a person."""


@review.command("list")
@json_option
def waiting(*, as_json: bool) -> None:
    """List what waits for a person, latest first."""
    from vskill_platform.domain.states import State
    from vskill_platform.submission_store import list_submissions

    page = run_in_env(lambda: list_submissions([State.NEEDS_REVIEW], limit=100))
    if as_json:
        print_json(list(page.items))
        return
    rows = [(one.id, one.skill_name, show_time(one.updated_at), one.history[-1].reason) for one in page.items]
    print_table(f"{len(rows)} wait for a person", ("submission", "skill", "since (UTC)", "why"), rows)


@review.command("cancel")
@click.argument("submission_id")
@_reason
def cancel(*, submission_id: str, reason: str) -> None:
    """Take a submission off the queue."""
    from vskill_platform.store.actions import cancel as act

    record = run_in_env(lambda: act(submission_id, by=OPERATOR, reason=reason))
    click.echo(f"{record.id}: {record.state}")


@review.command("again")
@click.argument("submission_id")
@_reason
def again(*, submission_id: str, reason: str) -> None:
    """Start a new run, or make a waiting one due now."""
    from vskill_platform.store.actions import run_again

    record = run_in_env(lambda: run_again(submission_id, by=OPERATOR, reason=reason))
    click.echo(f"{record.id}: run {record.run}, {record.state}")


@click.group(cls=PlatformGroup)
def block() -> None:
    """Keep skills from being published, and take down those that are."""


@block.command("list")
@json_option
def entries(*, as_json: bool) -> None:
    """List every entry of the blocklist."""
    from vskill_platform.store.blocklist import list_blocks

    found = run_in_env(list_blocks)
    if as_json:
        print_json(found)
        return
    rows = [(str(e.target), e.severity.value, show_time(e.discovered_at), e.reason) for e in found]
    print_table(f"{len(rows)} entries", ("target", "severity", "since (UTC)", "reason"), rows)


@block.command("add")
@click.argument("kind", type=click.Choice(["place", "repository", "digest", "name"]))
@click.argument("target")
@_reason
@click.option("--severity", type=click.Choice(["low", "medium", "high", "critical"]), default="high")
def add(*, kind: str, target: str, reason: str, severity: str) -> None:
    """Block a place or repository (by URL), a content digest, or a name everywhere; effective at once."""
    from vskill_platform.domain.blocklist import BlockEntry, parse_target
    from vskill_platform.domain.scan import Severity
    from vskill_platform.store.blocklist import add_block, reapply_blocklist
    from vskill_platform.worker_context import require_env

    blocked = parse_target(kind, target)

    async def act() -> None:
        now = require_env("kv").kv.now()
        await add_block(BlockEntry(blocked, Severity(severity), reason, OPERATOR, now, now))
        await reapply_blocklist()

    run_in_env(act)
    click.echo(f"Blocked: {blocked}")


@block.command("remove")
@click.argument("kind", type=click.Choice(["place", "repository", "digest", "name"]))
@click.argument("target")
@click.option("--reason", default="lifted", show_default=True, help="Why; kept in the audit.")
def remove(*, kind: str, target: str, reason: str) -> None:
    """Lift an entry; what no other entry hits gets a new run."""
    from vskill_platform.domain.blocklist import parse_target
    from vskill_platform.domain.errors import NotFound
    from vskill_platform.store.blocklist import reapply_blocklist, remove_block

    blocked = parse_target(kind, target)

    async def act() -> None:
        if not await remove_block(blocked, by=OPERATOR, reason=reason):
            raise NotFound(f"There is no entry for {blocked}; 'block list' shows what there is.")
        await reapply_blocklist()

    run_in_env(act)
    click.echo(f"No longer blocked: {blocked}")
