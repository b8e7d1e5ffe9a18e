"""The scan itself: files in, a report out, in one thread and without any outside help.

Every file becomes one or more layers of text; patterns and facts are found in each; rules join them; what holds
becomes a finding with its place. Budgets are checked between steps, and a scan that could not look at everything
says so. `pool` and `scanner` run this for the workers, `vskill-platform scan` for people.
"""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial

from vskill_core.capability import LONGEST_VALUE, CapabilityKind, SkillCapability, make_card
from vskill_core.content import SkillFile
from vskill_core.findings import Coverage, Finding, ScanStatus, StaticReport
from vskill_core.form import FormNote
from vskill_scan.code.flows import read_code
from vskill_scan.hits import fits, is_excusable, make_finding, polarity_at
from vskill_scan.limits import DEFAULT_LIMITS, SEARCHED_BYTES, Budget, Exceeded, Limits
from vskill_scan.model import Fact, Hit, Layer
from vskill_scan.plugins.card import card_of, command_layers, problem_findings
from vskill_scan.plugins.parts import read_plugin
from vskill_scan.plugins.plugin import Plugin
from vskill_scan.reading.code_roles import SPOKEN, role_at
from vskill_scan.reading.decode import TooMuchEncoded, decoded_layers
from vskill_scan.reading.files import Reading, ReadText
from vskill_scan.reading.segments import hidden_layer, segment_file
from vskill_scan.reading.visible_text import normalise_text
from vskill_scan.results.capabilities import capabilities_of, unread_capabilities
from vskill_scan.rules import structure
from vskill_scan.rules.checksums import CHECKS
from vskill_scan.rules.evaluate import places, possible
from vskill_scan.rules.floods import searchable
from vskill_scan.rules.matcher import FORBIDDING, LATER, Matcher
from vskill_scan.rules.ruleset import Leaf, Ruleset, TextRule
from vskill_scan.rules.structure import CheckManifest

#: Of one rule in one file; more would bury everything else.
MOST_FINDINGS = 20

#: Unread files that the problem of a report names.
SHOWN_PROBLEMS = 5
FLOODED = "only partly searched: the same words stand in it too often"
#: Files whose bytes nobody can read.
OPAQUE_RULES = (structure.BINARY.id, structure.OPAQUE.id)


def _ignore() -> None:
    """For what need not be told."""


def accept_manifest(_: bytes) -> None:
    """For callers that check the manifest elsewhere."""


class Engine:
    """A rule set, compiled. One scan at a time."""

    def __init__(
        self,
        ruleset: Ruleset,
        check_manifest: CheckManifest = accept_manifest,
        known_bad_digests: Collection[str] = (),
        limits: Limits = DEFAULT_LIMITS,
        compiled: Mapping[str, bytes] | None = None,
    ) -> None:
        self.ruleset = ruleset
        self.matcher = Matcher(ruleset, compiled)
        self._check_manifest = check_manifest
        self._known_bad = ruleset.known_skills | frozenset(known_bad_digests)
        self._limits = limits

    @property
    def version(self) -> str:
        return self.ruleset.version

    def scan(self, files: Sequence[SkillFile]) -> StaticReport:
        """Never raises, and never calls clean what it could not look at."""
        began = time.monotonic()
        scan = _Scan(self.ruleset, self.matcher, Budget(self._limits))
        status, problem = ScanStatus.COMPLETE, ""
        card: tuple[SkillCapability, ...] = ()
        try:
            scan.structure(files, self._check_manifest, self._known_bad)
            scan.read(files)
            scan.judge()
            card = scan.card(files)
        except Exceeded as error:
            status, problem = ScanStatus.TIMED_OUT, scan.at(str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, the content was not looked at
            status, problem = ScanStatus.ERROR, scan.at(f"the scanner failed: {error!r}")
        if status is ScanStatus.COMPLETE and scan.reading.unread:
            status = ScanStatus.INCOMPLETE
            unread = list(scan.reading.unread.items())
            problem = "; ".join(f"{path}: {why}" for path, why in unread[:SHOWN_PROBLEMS])
        if status in (ScanStatus.TIMED_OUT, ScanStatus.ERROR):
            card = (SkillCapability(CapabilityKind.UNREAD, f"everything: {problem}"[:LONGEST_VALUE]),)
        return StaticReport(
            self.version,
            status,
            tuple(scan.findings),
            scan.coverage(files),
            problem,
            round((time.monotonic() - began) * 1000),
            notes=tuple(scan.notes),
            capabilities=card,
        )


Spot = tuple[int, int, int]


class _Scan:
    """What is known so far of one skill."""

    def __init__(self, ruleset: Ruleset, matcher: Matcher, budget: Budget) -> None:
        self._ruleset = ruleset
        self._matcher = matcher
        self._budget = budget
        self.reading = Reading(budget, ruleset.known_files)
        self.findings: list[Finding] = []
        self.notes: list[FormNote] = []
        #: what clients make of the folder where it has a plugin's manifest
        self._plugin: Plugin | None = None
        self._layers: list[Layer] = []
        #: layer, offset and length of everything that matched, by leaf
        self._spots: dict[int, list[Spot]] = {}
        self._hits: dict[int, list[Hit]] = {}
        #: layers that were searched for what forbids a finding, and for what is looked for later
        self._searched: dict[str, set[int]] = {FORBIDDING: set(), LATER: set()}
        self._counts_in: dict[tuple[tuple[str, ...], str], bool] = {}

    def at(self, problem: str) -> str:
        """The problem with the file at which it came up."""
        return f"{self.reading.path}: {problem}" if self.reading.path else problem

    def structure(self, files: Sequence[SkillFile], check: CheckManifest, known_bad: Collection[str]) -> None:
        plugin = self._plugin = read_plugin(files)
        is_plugin = plugin is not None and plugin.fatal is None
        self.findings.extend(structure.findings(files, check, known_bad, self.notes, may_lack_it=is_plugin))
        if plugin is not None:
            self.findings.extend(problem_findings(plugin.problems))
            for one in plugin.problems:
                if one.unread:
                    told = f"a client may start what was not read: {one.sentence}; {one.fix}"
                    self.reading.problem(one.file, told)

    def read(self, files: Sequence[SkillFile]) -> None:
        """Every text, however deep it lies, becomes layers with everything that matched in them."""
        for source in self.reading.sources(files, [*self._plugin.obeyed()] if self._plugin else ()):
            self._budget.check()
            self.findings.extend(source.findings)
            if source.text is not None:
                self._read_text(source, source.text)
        for layer in command_layers(self._plugin) if self._plugin else ():
            self._add(layer)
        for number in range(len(self._layers)):
            self._decode(number)
        for number, layer in enumerate(self._layers):
            self._read_code(layer)
            for fact in layer.facts:
                self._fact(number, fact)

    def _read_text(self, source: ReadText, text: str) -> None:
        normal = normalise_text(text)
        self._add(segment_file(source.path, normal, referenced=source.referenced))
        for line, _, said in normal.spelt:
            self._budget.check()
            self._add(hidden_layer(source.path, said.encode("utf-8", "replace"), line))

    def _decode(self, number: int) -> None:
        layer = self._layers[number]
        self.reading.path = layer.path
        try:
            for found in decoded_layers(layer.text):
                self._budget.check()
                attributes = {"how": "+".join(found.how), "layers": str(len(found.how))}
                self._fact(number, Fact("encoded", found.offset, found.length, attributes))
                place = layer.piece_at(found.offset)
                self._add(hidden_layer(layer.path, found.text, layer.line_at(found.offset), place))
        except TooMuchEncoded:
            self.reading.problem(layer.path, "only partly decoded: it holds too many encoded texts")

    def _add(self, layer: Layer) -> None:
        number = len(self._layers)
        self._layers.append(layer)
        self._budget.check(len(layer.text) // SEARCHED_BYTES)
        text = searchable(layer.flowing)
        if len(text) < len(layer.flowing):
            self.reading.problem(layer.path, "only partly scanned: too many curl and wget commands")
        flooded = partial(self.reading.problem, layer.path, FLOODED)
        for leaf, offset, length in self._matcher.matches(text, layer.roles, flooded):
            self._spots.setdefault(leaf, []).append((number, offset, length))

    def _read_code(self, layer: Layer) -> None:
        self._budget.check()
        self.reading.path = layer.path
        read_code(layer, self._budget.check)
        if layer.unread:
            self.reading.problem(layer.path, layer.unread)

    def _matched_rules(self) -> list[TextRule]:
        """The rules of which anything was found, in order."""
        touched = {self._ruleset.by_leaf[number].id: self._ruleset.by_leaf[number] for number in self._spots}
        return [touched[rule_id] for rule_id in sorted(touched)]

    def _fact(self, number: int, fact: Fact) -> None:
        for leaf in self._ruleset.by_fact.get(fact.name, ()):
            if fits(leaf, fact):
                self._spots.setdefault(leaf.number, []).append((number, fact.offset, fact.length))

    def judge(self) -> None:
        """Each rule whose condition can hold by what was seen."""
        for rule in self._matched_rules():
            condition = self._ruleset.conditions[rule.id]
            if possible(condition, self._spots, later=True):
                self._budget.check()
                self._search_later(rule)
                if possible(condition, self._spots, later=False):
                    self.findings.extend(self._findings(rule, places(condition, self._find, self._layers)))

    def _find(self, leaf: Leaf) -> list[Hit]:
        """The places of a leaf that count, by role, polarity and path."""
        if leaf.number not in self._hits:
            if not leaf.counts:
                self._search(FORBIDDING, range(len(self._layers)))
            hits = self._hits[leaf.number] = []
            spots = self._spots.get(leaf.number, ())
            # What was looked for later was found in another order.
            for spot in sorted(spots) if leaf.later else spots:
                self._budget.check()
                if (hit := self._hit(leaf, *spot)) is not None:
                    hits.append(hit)
        return self._hits[leaf.number]

    def _search_later(self, rule: TextRule) -> None:
        """Look for the rest of a rule in each file where it may hold: its parts hold together in one file at most."""
        leaves = self._ruleset.leaf_numbers[rule.id]
        if not any(self._ruleset.leaves[leaf].later for leaf in leaves):
            return
        seen: dict[str, set[int]] = {}
        for leaf in leaves:
            for spot in self._spots.get(leaf, ()):
                seen.setdefault(self._layers[spot[0]].path, set()).add(leaf)
        condition = self._ruleset.conditions[rule.id]
        paths = {path for path, found in seen.items() if possible(condition, found, later=True)}
        self._search(LATER, (number for number, layer in enumerate(self._layers) if layer.path in paths))

    def _search(self, group: str, layers: Iterable[int]) -> None:
        for number in layers:
            if number in self._searched[group]:
                continue
            self._searched[group].add(number)
            layer = self._layers[number]
            # Too many words that forbid a finding only ever make one more.
            is_later = group is LATER
            text = searchable(layer.flowing) if is_later else layer.flowing
            flooded = partial(self.reading.problem, layer.path, FLOODED) if is_later else _ignore
            for leaf, offset, length in self._matcher.matches_of(group, text, flooded):
                self._spots.setdefault(leaf, []).append((number, offset, length))

    def _hit(self, leaf: Leaf, number: int, offset: int, length: int) -> Hit | None:
        layer = self._layers[number]
        if leaf.files and not self._in_files(leaf.files, layer.path):
            return None
        if layer.roles.isdisjoint(leaf.roles) and leaf.roles.isdisjoint(SPOKEN):
            return None
        piece = layer.piece_at(offset)
        role = role_at(layer, piece, offset)
        if role not in leaf.roles or polarity_at(layer, piece, offset, length) not in leaf.polarity:
            return None
        if leaf.condition.check and not CHECKS[leaf.condition.check](layer.text[offset : offset + length]):
            return None
        excusable = leaf.counts and is_excusable(layer, piece, role, offset)
        return Hit(number, offset, length, piece.segment, piece.section, excusable, leaf.excuses)

    def _in_files(self, patterns: tuple[str, ...], path: str) -> bool:
        key = (patterns, path)
        if key not in self._counts_in:
            name = path.rpartition("/")[2]
            self._counts_in[key] = any(fnmatchcase(path, one) or fnmatchcase(name, one) for one in patterns)
        return self._counts_in[key]

    def _findings(self, rule: TextRule, found: list[Hit]) -> Iterator[Finding]:
        by_file: dict[str, dict[int, Hit]] = {}
        for hit in found:
            layer = self._layers[hit.layer]
            by_file.setdefault(layer.path, {}).setdefault(layer.line_at(hit.offset), hit)
        for lines in by_file.values():
            shown = sorted(lines)[:MOST_FINDINGS]
            for line in shown:
                left = len(lines) - len(shown) if line == shown[-1] else 0
                yield make_finding(rule, self._layers[lines[line].layer], lines[line], line, left)

    def card(self, files: Sequence[SkillFile]) -> tuple[SkillCapability, ...]:
        """What the skill can do, and what of it could not be read."""
        found = capabilities_of(self._layers, self._budget, self.reading, (file.path for file in files))
        opaque = [
            (one.file, one.excerpt.partition(",")[0]) for one in self.findings if one.rule_id in OPAQUE_RULES
        ]
        documents = [(file.path, "PDF document") for file in files if file.data.startswith(b"%PDF")]
        unread = [*self.reading.unread.items(), *opaque, *documents]
        started = card_of(self._plugin, files) if self._plugin else ()
        return make_card([*found, *started, *unread_capabilities(self._layers, unread)])

    def coverage(self, files: Sequence[SkillFile]) -> Coverage:
        return Coverage(
            len(files),
            self.reading.files_scanned,
            sum(len(file.data) for file in files),
            self.reading.bytes_scanned,
        )
