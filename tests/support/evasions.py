"""The evasions of tests/scan/evasions: attacks written before the rules against them, each with the lines where a finding
must stand, and most with an honest twin. They are frozen: what the scanner learns is measured on them."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import yaml

from vskill_core.content import SkillFile
from vskill_core.findings import Finding, FindingKind, Severity
from vskill_platform.domain.verdicts.facts import CardFacts, Facts
from vskill_platform.domain.verdicts.policy import load_policy, match_rules
from vskill_scan.engine import Engine
from vskill_scan.memory.known_hosts import is_known_host

FOLDER = Path(__file__).parent.parent / "scan" / "evasions"
#: Written after what was built against the others, by somebody who had not built it.
LATER = FOLDER.with_name("evasions_later")
#: Written after both, by somebody who had not read the rules.
THIRD = FOLDER.with_name("evasions_third")
SENT_TO_A_PERSON = (Severity.HIGH, Severity.CRITICAL)


class Evasion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One attack."""

    id: str
    family: str
    #: what carries it: a language, a kind of file
    carrier: str
    #: of its prose
    language: str
    #: plain, assembled, encoded, packed, compiled, polyglot, or across files
    technique: str
    files: dict[str, str | bytes]
    #: by file, where a finding must stand; none of a file that has no lines
    lines: dict[str, list[int]]
    honest: dict[str, str | bytes] = {}


def load_evasions(folder: Path = FOLDER) -> Iterator[Evasion]:
    for path in sorted(folder.glob("*.yaml")):
        for row in yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader):
            yield _read(row)


def _read(row: dict[str, object]) -> Evasion:
    """YAML's bytes are bytes already; msgspec would look for base64."""
    return Evasion(**row)  # type: ignore[arg-type] # the fields are those of the struct, and a test reads them all


def digest_of_evasions(folder: Path = FOLDER) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.yaml")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _skill(files: dict[str, str | bytes]) -> tuple[SkillFile, ...]:
    return tuple(
        SkillFile(path, "100644", content.encode() if isinstance(content, str) else content)
        for path, content in files.items()
    )


def held_by(engine: Engine, evasion: Evasion) -> list[str]:
    """The rules that hold an attack: malice that goes to a person, at a line of the attack."""
    found = engine.scan(_skill(evasion.files)).findings
    return sorted(
        {
            one.rule_id
            for one in found
            if one.kind is FindingKind.MALICE
            and one.severity in SENT_TO_A_PERSON
            and _is_at(one, evasion.lines)
        }
    )


def combined_by(engine: Engine, files: dict[str, str | bytes]) -> list[str]:
    """The rules of the preset `open` that hold a skill with these files of an owner whom nobody vouches for."""
    card = engine.scan(_skill(files)).capabilities or ()
    known = frozenset(one.value for one in card if is_known_host(one.value))
    facts = Facts(card=CardFacts.of(card, known))
    return [one.name for one in match_rules(load_policy("extends: open"), facts)]


def _is_at(finding: Finding, lines: dict[str, list[int]]) -> bool:
    """A member of an archive stands where the archive does."""
    wanted = lines.get(finding.file.partition("!")[0])
    return wanted is not None and (not wanted or finding.line in wanted)


def alarms_in_twin(engine: Engine, evasion: Evasion) -> list[str]:
    """What would send the honest twin to a person."""
    found = engine.scan(_skill(evasion.honest)).findings
    return sorted(
        {
            one.rule_id
            for one in found
            if one.kind is not FindingKind.CAPABILITY and one.severity in SENT_TO_A_PERSON
        }
    )
