"""How many skills a second go from a repository's address to PUBLISHED: real git over loopback, the real consumer,
SQLite, every transition durable. The git host is a process of its own and shares the machine's cores.
"""

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from bench.consuming import consuming, from_clients, until_empty, until_published
from bench.measure import timed
from bench.processes import ROOT, checked_out, cpu_seconds, start_server
from bench.results import Figure, Report, at_least
from bench.workshop import Workshop
from tests.support.git_server import Repo, skill_md
from vskill_platform.bootstrap import env_for
from vskill_platform.intake.discover import submit_skills
from vskill_platform.queue.health import queue_health
from vskill_platform.settings import Settings
from vskill_platform.worker_context import Env, run_with_worker_env

CHILD = Path(__file__).parent / "path_child.py"
PATIENCE_S = 1800
#: Clients that submit at the same time.
SUBMITTERS = 8
#: How many of the scale's submissions there are for each repository of ten skills, and of one: so many that starting
#: the scanning processes is a small part of the time.
SHARES = {10: 30, 1: 30}
GOALS = {10: 50.0, 1: 12.0}
#: Where there are fewer repositories than this, starting the scanning processes would take most of the time: so many
#: more are published before the clock starts.
FEW, EARLY = 10, 2
#: A skill of realistic size: six files, 20 KB.
FILES = 5
FILE_BYTES = 3_800


class Sample(msgspec.Struct, frozen=True):
    """One round."""

    skills: int
    seconds: float
    #: Until the last repository was submitted; the worker works meanwhile.
    submitting: float
    #: CPU seconds of the platform's own process, of the git processes that it started, and of the git host.
    own_cpu: float
    git_cpu: float
    host_cpu: float
    stuck: int

    @property
    def rate(self) -> float:
        return self.skills / self.seconds


def run(workshop: Workshop, before: str = "") -> Report:
    """`before` is a commit whose path is measured in turn with this one's."""
    figures, goals, notes = [], [], []
    for skills, share in SHARES.items():
        repositories = max(2, workshop.scale.submissions // share)
        samples = [measure(workshop, repositories, skills) for _ in range(workshop.scale.rounds)]
        name = f"repositories of {skills} {'skills' if skills > 1 else 'skill'}"
        figure = Figure.of(f"submit to PUBLISHED, {name}", "skills/s", [one.rate for one in samples])
        figures.append(figure)
        goals.append(at_least(f"skills/s from {name}", figure.median, GOALS[skills], unit="/s"))
        notes.append(f"{name}: {where_time_goes(samples[-1])}")
        if before:
            ours, theirs = compare(workshop, before, repositories, skills)
            figures += [
                Figure.of(f"{who}, {name}", "skills/s", rates)
                for who, rates in (("this commit beside it", ours), (before, theirs))
            ]
            ratio = statistics.median(ours) / statistics.median(theirs)
            goals.append(at_least(f"{name}: this commit ÷ {before}", ratio, 1))
    return Report(
        name="path",
        title="From a repository's address to PUBLISHED: real git over loopback, SQLite, the real consumer",
        figures=tuple(figures),
        goals=tuple(goals),
        notes=tuple(notes),
    )


def compare(
    workshop: Workshop, before: str, repositories: int, skills: int
) -> tuple[list[float], list[float]]:
    """Skills a second of this commit and of another, in processes of their own and in turn."""
    ours: list[float] = []
    theirs: list[float] = []
    with checked_out(before) as place:
        for _ in range(workshop.scale.rounds):
            workshop.say(f"measuring the path of {before} and of this commit")
            theirs.append(_rate_of(place, repositories, skills))
            ours.append(_rate_of(ROOT, repositories, skills))
    return ours, theirs


def _rate_of(source: Path, repositories: int, skills: int) -> float:
    done = subprocess.run(
        [sys.executable, "-P", str(CHILD), str(repositories), str(skills)],
        env={"PYTHONPATH": f"{source}:{source / 'src'}", "PATH": "/usr/local/bin:/usr/bin:/bin"},
        cwd=source,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    return float(done.stdout)


def where_time_goes(sample: Sample) -> str:
    """CPU milliseconds of one skill, by who spent them."""
    per_skill = 1000 / sample.skills
    return (
        f"{sample.rate:.0f} skills/s, {sample.stuck} stuck; a skill costs {sample.own_cpu * per_skill:.1f} ms of CPU "
        f"in the platform, {sample.git_cpu * per_skill:.1f} in the git commands that fetch and read, "
        f"{sample.host_cpu * per_skill:.1f} in the git host beside it; all submitted after "
        f"{sample.submitting / sample.seconds:.0%} of the time."
    )


def measure(workshop: Workshop, repositories: int, skills: int, blobs: str = "") -> Sample:
    """A host with fresh repositories, a fresh store, and one process that submits and works."""
    folder = workshop.new_file().with_suffix("")
    served = folder / "served"
    served.mkdir(parents=True)
    early = EARLY if repositories < FEW else 0
    for number in range(early + repositories):
        Repo(served / "owner" / f"repo-{number}.git").commit(_files(number, skills))
    with start_server("tests.support.git_server", str(served)) as (port, host_pid):
        settings = Settings(
            data_dir=str(folder / "data"),
            blobs=blobs,
            source_rewrites=(f"https://github.com/=http://127.0.0.1:{port}/",),
            log_level="error",
        )
        return workshop.run(
            _measure(settings, range(early), range(early, early + repositories), skills, host_pid)
        )


def _files(number: int, skills: int) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for skill in range(skills):
        folder = f"skills/s{skill}/" if skills > 1 else ""
        name = f"s{number}-{skill}"
        found[f"{folder}SKILL.md"] = skill_md(name, "Sorts the lines of a text.\n" * 30)
        for file in range(FILES):
            line = f"Line of file {file} of {name}: how a table of figures is read and checked.\n"
            found[f"{folder}references/part-{file}.md"] = (line * (FILE_BYTES // len(line))).encode()
    return found


async def _measure(settings: Settings, early: range, counted: range, skills: int, host_pid: int) -> Sample:
    async with env_for(settings) as env:
        return await run_with_worker_env(env, lambda: _publish_all(env, early, counted, skills, host_pid))


async def _publish_all(env: Env, early: range, counted: range, skills: int, host_pid: int) -> Sample:
    if early:
        async with consuming(env):
            await _submit_all(early, skills)
            await until_published(len(early) * skills)
            await until_empty(env)
    own, children, served = time.process_time(), _children_cpu(), cpu_seconds([host_pid])
    with timed() as whole:
        async with consuming(env):
            with timed() as submitting:
                await _submit_all(counted, skills)
            await until_published(counted.stop * skills)
            whole.stop()
            stuck = len((await queue_health()).violations)
            own, children = time.process_time() - own, _children_cpu() - children
            served = cpu_seconds([host_pid]) - served
    return Sample(len(counted) * skills, whole.seconds, submitting.seconds, own, children, served, stuck)


async def _submit_all(repositories: range, skills: int) -> None:
    async def submit(number: int) -> None:
        done = await submit_skills(f"https://github.com/owner/repo-{number}")
        assert len(done.results) == skills, done
        assert not any(one.error for one in done.results), done

    await from_clients(SUBMITTERS, repositories, submit)


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
