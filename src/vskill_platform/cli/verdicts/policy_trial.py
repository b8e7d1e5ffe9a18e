"""`policy try`: what another policy would have done, on the runs that the registry has stored, or on folders of
labelled skills on this machine, where no registry is needed."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from vskill_client.destination import Caller, run_with_caller
from vskill_client.output import json_option, print_json, print_table, show_text_time
from vskill_core.errors import InvalidInput, PlatformError
from vskill_core.folders import skill_name_at, skills_at
from vskill_core.identity import SKILL_FILE
from vskill_core.plural import counted
from vskill_platform.actions.verdicts.policy_trials import (
    TRY_POLICY,
    OutcomeChange,
    PolicyToTry,
    TrialView,
    summarise,
    try_on_files,
)
from vskill_platform.cli.process import run_async
from vskill_platform.cli.submissions.scan import scan_all

if TYPE_CHECKING:
    from vskill_platform.domain.verdicts.policy import Policy
    from vskill_platform.tiers.contract import Scanner

#: In the place of an outcome: the decision table or the form stops it, whatever a policy says.
STOPPED = "stopped"


@click.command("try")
@click.argument(
    "text",
    metavar="FILE",
    type=click.File(encoding="utf-8"),
    callback=lambda _context, _parameter, file: file.read(),
)
@click.argument("folders", metavar="[FOLDER]...", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--since", default="90d", show_default=True, help="How far back; facts are kept for 180 days.")
@json_option
def try_policy(*, text: str, folders: tuple[Path, ...], since: str, as_json: bool) -> None:
    """Try a policy on what was decided before.

    The last run of each submission is decided again, by the policy in force and by FILE, with the facts of its day.
    Nothing changes.

    With FOLDERs, the skills in each are scanned on this machine, and no registry is asked: the share that FILE, each
    preset and the decision table alone would publish, delay, hold for a reviewer or refuse. There, every owner is a
    stranger, no judge has read anything, and they are compared with the memory of this release and with nothing else.
    """
    if folders:
        _try_on_folders(text, folders, as_json=as_json)
        return
    trial = run_with_caller(lambda caller: _try_all(caller, PolicyToTry(text=text, since=since)))
    if as_json:
        print_json(trial)
        return
    click.echo(trial.summary)
    for count, what in (
        (trial.cut, "had facts that were too large to keep whole"),
        (trial.failed, "would be held because a rule of it cannot be evaluated"),
        (trial.skipped, "could not be read; the log names them"),
    ):
        if count:
            click.echo(f"{count} of them {what}.")
    if trial.differences:
        rows = [
            (
                show_text_time(one.decided_at),
                one.owner,
                one.skill,
                f"{one.before} → {one.after}",
                ", ".join(one.rules),
            )
            for one in trial.differences
        ]
        print_table(f"\nThe newest {len(rows)}", ("decided (UTC)", "owner", "skill", "change", "rules"), rows)


async def _try_all(caller: Caller, request: PolicyToTry) -> TrialView:
    """Every run, by as many requests as that takes."""
    found: list[TrialView] = []
    while True:
        found.append(await caller.call(TRY_POLICY, request))
        if found[-1].after in (None, request.after):
            return _join(found)
        request = msgspec.structs.replace(request, after=found[-1].after)


def _join(found: Sequence[TrialView]) -> TrialView:
    counts: Counter[tuple[str, str]] = Counter()
    for one in found:
        counts.update({(each.before, each.after): each.count for each in one.changes})
    changes = tuple(OutcomeChange(*change, count) for change, count in sorted(counts.items()))
    tried, older = sum(one.tried for one in found), sum(one.older for one in found)
    return msgspec.structs.replace(
        found[0],
        summary=summarise(tried, changes, older),
        tried=tried,
        changes=changes,
        older=older,
        cut=sum(one.cut for one in found),
        failed=sum(one.failed for one in found),
        skipped=sum(one.skipped for one in found),
        differences=next((one.differences for one in found if one.differences), ()),
        after=None,
    )


# Folders.


def _try_on_folders(text: str, folders: Sequence[Path], *, as_json: bool) -> None:
    # Loaded before the loop runs: an import reads files.
    import vskill_platform.bootstrap  # noqa: F401
    from vskill_platform.domain.verdicts.dry_run import PolicyOutcome
    from vskill_platform.domain.verdicts.policy import Preset, load_policy

    texts = {"the table alone": "", **{one.value: f"extends: {one.value}" for one in Preset}, "FILE": text}
    policies = [load_policy(one) for one in texts.values()]
    rows = []
    for folder in folders:
        places = skills_at(folder)
        if folder.is_dir() and not (places[0] / SKILL_FILE).is_file():
            fix = "name a folder that holds skills, each with a SKILL.md"
            raise InvalidInput(f"There is no skill in {folder}.", field="FOLDER", fix=fix)
        found = run_async(scan_all(places, 0, partial(_outcomes, policies)))
        for at, name in enumerate(texts):
            counts = Counter(outcomes[at] for outcomes in found)
            rows.append((folder.as_posix(), len(found), name, counts))
    outcomes = (*PolicyOutcome, STOPPED)
    if as_json:
        print_json(
            [
                {"folder": folder, "skills": skills, "policy": name, **{one: counts[one] for one in outcomes}}
                for folder, skills, name, counts in rows
            ]
        )
        return
    shares = [
        (folder, name, *(f"{100 * counts[one] / max(skills, 1):.1f} %" for one in outcomes))
        for folder, skills, name, counts in rows
    ]
    total = counted(sum(skills for _, skills, name, _ in rows if name == "FILE"), "skill")
    print_table(total, ("folder", "policy", *outcomes), shares)


async def _outcomes(policies: "Sequence[Policy]", scanner: "Scanner", place: Path) -> tuple[str, ...]:
    """What becomes of one skill by each policy."""
    from vskill_scan.command import read_published
    from vskill_scan.memory.memory import packaged_memory

    try:
        files = await asyncio.to_thread(read_published, place)
    except PlatformError:
        return (STOPPED,) * len(policies)
    report = await scanner.scan(files)
    try:
        # The name is looked up on disk, and the memory is read from there.
        found = await asyncio.to_thread(
            lambda: try_on_files(policies, skill_name_at(place), files, report, packaged_memory())
        )
    except PlatformError:
        found = ()
    return tuple(one.outcome.value for one in found) or (STOPPED,) * len(policies)
