"""How many skills the scanner looks at in one second of processor time, how long the slow ones take, how that compares
with Cisco's skill-scanner on the same skills in the same run, and what the rules of a policy add to a decision.

One process, one thread. Loading and compiling the rules is left out for both: a worker does it once in its life.
"""

import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from bench import skill_scanner
from bench.measure import repeat
from bench.results import Figure, Goal, Report, at_least, at_most
from bench.skills import skills
from bench.workshop import Workshop
from vskill_core.content import SkillFile
from vskill_core.findings import ScanStatus
from vskill_platform.domain.verdicts.facts import CardFacts, Facts
from vskill_platform.domain.verdicts.policy import load_policy, match_rules
from vskill_scan.engine import Engine
from vskill_scan.reading.manifest import read_manifest
from vskill_scan.rules.ruleset import bundled_rules

Skill = tuple[SkillFile, ...]


def run(workshop: Workshop) -> Report:
    compared = workshop.scale.compared
    found = skills(workshop.scale.scanned)
    began = time.process_time()
    engine = Engine(bundled_rules(), read_manifest)
    compile_s = time.process_time() - began
    rounds = [_scan(engine, found) for _ in range(workshop.scale.rounds + 1)][1:]
    rates = [len(found) / sum(times) for times in rounds]
    slow_ms = [statistics.quantiles(times, n=20)[-1] * 1000 for times in rounds]
    cards = [CardFacts.of(engine.scan(one).capabilities or (), frozenset()) for one in found]
    asked_ms = repeat(workshop.scale.rounds, lambda: _ask_rules(cards))
    figures = [
        Figure.of("vskill-platform", "skills / CPU s", rates),
        Figure.of("95th percentile of one skill", "ms", slow_ms),
        Figure.of("compiling the rules, once, not counted above", "s", [compile_s]),
        Figure.of("a policy of 30 rules asked about one skill", "ms", asked_ms),
    ]
    goals = [
        at_least("skills per second of processor time", statistics.median(rates), 100, unit=" / s"),
        at_most("95th percentile of one skill", statistics.median(slow_ms), 100, unit=" ms"),
        at_most("what a policy of 30 rules adds to a decision", statistics.median(asked_ms), 1, unit=" ms"),
    ]
    notes = [_described(found)]
    if compared and skill_scanner.installed():
        _compare(workshop, engine, found[:compared], figures, goals)
    elif compared:
        notes.append("Cisco's skill-scanner is not compared: `make bench` could not install it.")
    title = "The static scan of generated skills"
    return Report("scanner", title, tuple(figures), tuple(goals), tuple(notes))


def _compare(
    workshop: Workshop, engine: Engine, found: Sequence[Skill], figures: list[Figure], goals: list[Goal]
) -> None:
    """Both on the same few skills, ours three times right before and right after the peer: one pass is noise."""
    workshop.say(f"asking Cisco's skill-scanner for {len(found)} skills")
    folder = workshop.folder / "skills"
    _write(folder, found)
    ours = [sum(_scan(engine, found)) for _ in range(3)]
    peer = skill_scanner.cpu_seconds(folder)
    ours += [sum(_scan(engine, found)) for _ in range(3)]
    figures.append(Figure.of("Cisco skill-scanner, its defaults", "skills / CPU s", [len(found) / peer]))
    goals.append(
        at_least("as fast as Cisco's skill-scanner on the same skills", peer / statistics.median(ours), 30)
    )


def _scan(engine: Engine, found: Sequence[Skill]) -> list[float]:
    """Processor time of each skill; what could not be looked at would be fast, and does not count."""
    taken = []
    for skill in found:
        began = time.thread_time()
        report = engine.scan(skill)
        taken.append(time.thread_time() - began)
        if report.status is not ScanStatus.COMPLETE:
            raise AssertionError(report.problem)
    return taken


def _write(folder: Path, found: Sequence[Skill]) -> None:
    for number, skill in enumerate(found):
        for file in skill:
            path = folder / f"{number:04}" / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.data)


def _ask_rules(cards: Sequence[CardFacts]) -> float:
    """Milliseconds of processor time for one skill: the strictest preset, and a dozen rules that look at each host."""
    rule = "{{name: r{}, when: 'card.hosts.exists(one, one.acts && !one.known)', then: note}}"
    policy = load_policy(f"extends: strict\nrules: [{', '.join(map(rule.format, range(12)))}]")
    began = time.thread_time()
    for card in cards:
        match_rules(policy, Facts(card=card))
    return (time.thread_time() - began) * 1000 / len(cards)


def _described(found: Sequence[Skill]) -> str:
    files = sum(len(skill) for skill in found) / len(found)
    size = sum(len(file.data) for skill in found for file in skill) / len(found) / 1024
    return f"{len(found)} generated skills of {files:.1f} files and {size:.1f} KB on average, some with an attack."
