"""`python -m bench.labelled FOLDER`: the scanner on a folder of labelled skills (PART/LABEL/OWNER/NAME or
PART/LABEL/NUMBER): what the registry would do with each label, skills per second of processor time, the slow ones,
memory, and where the time goes; beside an earlier commit and Cisco's skill-scanner in the same run.

Both commits scan in processes of their own, in turn and twice each, so that what else the machine does hits both.
"""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from bench import skill_scanner
from bench.command import console, end
from bench.processes import ROOT, checked_out
from bench.render import show, to_json, write_page
from bench.results import Figure, Goal, Report, Table, at_least, at_most
from bench.scale import FULL
from bench.suite import Run, run_suite
from bench.workshop import Workshop
from vskill_platform.cli.labelled_skills import Label, labelled_skills

CHILD = Path(__file__).parent / "labelled_scan.py"
PASSES = 2
PATIENCE_S = 1800

Scans = dict[str, Any]


def scan_with(source: Path, skills: Sequence[Path], *options: str) -> Scans:
    """The scans of these skills by the sources of one commit."""
    done = subprocess.run(
        [sys.executable, "-P", str(CHILD), *options],
        input="\n".join(str(skill.resolve()) for skill in skills),
        env={"PYTHONPATH": str(source / "src"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    scans: Scans = json.loads(done.stdout)
    return scans


def run(workshop: Workshop, folder: Path, before: str, compared: int) -> Report:
    skills = labelled_skills(folder)
    paths = list(skills)
    ours: list[Scans] = []
    theirs: list[Scans] = []
    if before:
        with checked_out(before) as place:
            for _ in range(PASSES):
                workshop.say(f"scanning {len(paths)} skills with {before} and with this commit")
                theirs.append(scan_with(place, paths))
                ours.append(scan_with(ROOT, paths))
    else:
        ours = [scan_with(ROOT, paths) for _ in range(PASSES)]
    profile = scan_with(ROOT, paths, "profile")
    figures, goals = _speed(ours, theirs, before)
    tables = [_verdicts(skills, ours[0], "this commit")]
    if theirs:
        tables.append(_verdicts(skills, theirs[0], before))
    tables.append(
        Table(
            ("where the time goes", "share"),
            tuple((name, f"{share:.0%}") for name, share in profile["places"]),
        )
    )
    if compared:
        tables.append(_peer(workshop, skills, compared, figures))
    note = f"{len(paths)} labelled skills; one process, one thread; compiling the rules is not counted."
    return Report(
        "labelled", "The static scan of labelled skills", tuple(figures), tuple(goals), (note,), tuple(tables)
    )


def _speed(ours: list[Scans], theirs: list[Scans], before: str) -> tuple[list[Figure], list[Goal]]:
    rates, old_rates = (
        [len(one["seconds"]) / sum(one["seconds"]) for one in runs] for runs in (ours, theirs)
    )
    slow = [_percentile(one["seconds"], 95) * 1000 for one in ours]
    memory = [one["memory_mb"] for one in ours]
    figures = [
        Figure.of("this commit", "skills / CPU s", rates),
        Figure.of("95th percentile of one skill", "ms", slow),
        Figure.of("memory of the process", "MB", memory),
    ]
    goals = [
        at_least("skills per second of processor time", max(rates), 100, unit=" / s"),
        at_most("95th percentile of one skill", min(slow), 100, unit=" ms"),
        at_most("memory of the process", max(memory), 200, unit=" MB"),
    ]
    if theirs:
        figures.insert(1, Figure.of(before, "skills / CPU s", old_rates))
        goals.append(at_least(f"as fast as {before}", max(rates) / max(old_rates), 1))
    return figures, goals


def _percentile(values: Sequence[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def _verdicts(skills: dict[Path, Label], scans: Scans, who: str) -> Table:
    counts: dict[Label, Counter[str]] = {}
    for label, state in zip(skills.values(), scans["states"], strict=True):
        counts.setdefault(label, Counter())[state] += 1
    rows = tuple(
        (
            part,
            label,
            str(sum(states.values())),
            ", ".join(f"{state} {count}" for state, count in states.most_common()),
        )
        for (part, label), states in sorted(counts.items())
    )
    return Table(("part", "label", "skills", f"what {who} decides, without a judge"), rows)


def _peer(workshop: Workshop, skills: dict[Path, Label], compared: int, figures: list[Figure]) -> Table:
    """Cisco's scanner on the same number of skills of each label; flagged is high and above."""
    columns = ("part", "label", "skills", "flagged by Cisco skill-scanner")
    if not skill_scanner.installed():
        return Table(columns, (("", "", "", skill_scanner.MISSING),))
    rows: list[tuple[str, ...]] = []
    seconds: list[float] = []
    for label in sorted(set(skills.values())):
        some = [skill for skill, one in skills.items() if one == label][:compared]
        workshop.say(f"asking Cisco's skill-scanner for {len(some)} skills")
        with tempfile.TemporaryDirectory() as folder:
            for number, skill in enumerate(some):
                (Path(folder) / f"{number:05}").symlink_to(skill.resolve(), target_is_directory=True)
            outcomes = skill_scanner.outcomes(Path(folder))
        seconds += [taken for taken, _ in outcomes]
        rows.append((*label, str(len(some)), str(sum(flagged for _, flagged in outcomes))))
    figures.append(Figure.of("Cisco skill-scanner", "skills / CPU s", [len(seconds) / sum(seconds)]))
    return Table(columns, tuple(rows))


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--before", default="", help="Compare with this commit, in the same run.")
@click.option(
    "--compared", default=0, show_default=True, help="Skills of each label that Cisco's scanner is given."
)
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures here."
)
@click.option("--write-docs", is_flag=True, help="Write what was measured into docs/benchmarks.md.")
def main(*, folder: Path, before: str, compared: int, json_file: Path | None, write_docs: bool) -> None:
    """Scan labelled skills; end with 1 where a goal is missed."""
    progress = console(stderr=True)
    benches = {"labelled": lambda workshop: run(workshop, folder, before, compared)}
    found: Run = run_suite(benches, FULL, lambda text: progress.print(f"bench: {text}"))
    show(found, console())
    if json_file is not None:
        json_file.write_bytes(to_json(found))
    if write_docs:
        write_page(found, ROOT / "docs" / "benchmarks.md")
    end(found, quick=False)


if __name__ == "__main__":
    main()
