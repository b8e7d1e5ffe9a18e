"""What a match counts as: whether the text around it warns of it or excuses it, whether a fact is what a rule asks for,
and the finding that it becomes."""

from fnmatch import fnmatchcase

from vskill_core.findings import Finding
from vskill_scan.model import SPEAKING, Fact, Hit, Layer, Piece, Polarity, TextRole
from vskill_scan.polarity import last_sentence, tells
from vskill_scan.reading.visible_text import written_column
from vskill_scan.rules.ruleset import Leaf, TextRule

EXCERPT = 200
#: Of a sentence, what stands before a command in it.
LONGEST_TOLD = 300


def polarity_at(layer: Layer, piece: Piece, offset: int, length: int) -> Polarity:
    """A word of warning that is itself part of the match does not turn the match into a warning."""
    if 0 <= piece.warns_from <= offset:
        return Polarity.WARNING
    about = layer.about_around(piece)
    if about is None:
        return Polarity.NEUTRAL
    if about.follows(layer.text, offset + length):
        return Polarity.WARNING
    # What a sentence tells to do, it tells in spite of a warning in front.
    told_to = piece.start if piece.role is TextRole.COMMAND else offset
    warned = about.precedes(layer.text, told_to) and not layer.tells_to_do(piece.about_from, told_to)
    return Polarity.WARNING if warned else Polarity.NEUTRAL


def is_excusable(layer: Layer, piece: Piece, role: TextRole, offset: int) -> bool:
    """Whether words beside it may excuse a match: a comment excuses no code, and "e.g." no command that the sentence
    tells to run."""
    if role in SPEAKING or role is TextRole.HIDDEN:
        return True
    if role is not TextRole.COMMAND or piece.start <= layer.line_start(offset):
        return False
    return not tells(last_sentence(layer.flowing[max(0, piece.start - LONGEST_TOLD) : piece.start]))


def fits(leaf: Leaf, fact: Fact) -> bool:
    """Whether the fact is what the leaf asks for."""
    return all(
        any(fnmatchcase(fact.attributes.get(name, ""), pattern) for pattern in wanted)
        for name, wanted in leaf.condition.attributes.items()
    )


def make_finding(rule: TextRule, layer: Layer, hit: Hit, line: int, left: int) -> Finding:
    why = f"{rule.title}. {rule.why}"
    if left:
        why += f" The same stands at {left} more places in this file."
    return Finding(
        rule_id=rule.id,
        severity=rule.severity,
        category=rule.category,
        kind=rule.kind,
        file=layer.path,
        line=line,
        column=_column(layer, hit.offset, line),
        excerpt=_excerpt(layer, hit),
        why=why,
        remedy=rule.remedy,
        certain=rule.certain,
    )


def _column(layer: Layer, offset: int, line: int) -> int:
    if layer.decoded:
        return 0
    start = layer.line_start(offset)
    if layer.written is not None:
        return written_column(layer.written, line - layer.origin + 1, offset - start + 1)
    return offset - start + 1


def _excerpt(layer: Layer, hit: Hit) -> str:
    """The match with what surrounds it on its line, on one line."""
    start = max(layer.line_start(hit.offset), hit.offset - EXCERPT // 4)
    stop = layer.text.find(b"\n", hit.offset)
    stop = len(layer.text) if stop < 0 else stop
    cut = layer.text[start : max(stop, hit.offset + hit.length)][: EXCERPT * 4].decode("utf-8", "replace")
    return " ".join(cut.split())[:EXCERPT]
