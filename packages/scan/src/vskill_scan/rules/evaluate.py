"""Joins what was found: given the places where each leaf of a rule holds, the places where the rule itself holds.

A condition is worked out from the leaves upwards as sets of places; `all` keeps those of its first member whose
unit (line, sentence, segment, section or file) holds every member and nothing of `none`.
"""

from bisect import bisect_right
from collections.abc import Callable, Container, Iterable

from vskill_scan.model import Hit, Layer, Unit
from vskill_scan.polarity import sentences
from vskill_scan.rules.ruleset import Leaf, RuleNode

#: Where a leaf holds; worked out when a rule asks for it.
Find = Callable[[Leaf], list[Hit]]
Key = tuple[object, ...]


def possible(node: RuleNode | Leaf, seen: Container[int], *, later: bool) -> bool:
    """Whether the condition can hold at all, given the numbers of the leaves that were found anywhere in the skill.
    `later` says that what is looked for later may yet be found."""
    if isinstance(node, Leaf):
        return node.number in seen or (later and node.later)
    for child in node.all:
        if not possible(child, seen, later=later):
            return False
    return not node.any or any(possible(child, seen, later=later) for child in node.any)


def places(node: RuleNode | Leaf, find: Find, layers: list[Layer]) -> list[Hit]:
    """Where the condition holds."""
    if isinstance(node, Leaf):
        return find(node)
    groups: list[list[Hit]] = []
    for child in node.all:
        groups.append(places(child, find, layers))
        if not groups[-1]:
            return []
    if node.any:
        groups.append([hit for child in node.any for hit in places(child, find, layers)])
    if not groups[-1]:
        return []
    if len(groups) == 1 and not node.none:
        return groups[0]
    key = _KEYS[node.within]
    shared = set.intersection(*(_keys(group, key, layers) for group in groups))
    excused: set[Key] = set()
    if shared and node.none:
        forbidding = [hit for child in node.none for hit in places(child, find, layers)]
        shared -= _keys((hit for hit in forbidding if not hit.excuses), key, layers)
        excused = _keys((hit for hit in forbidding if hit.excuses), key, layers)
    return [
        hit
        for hit in groups[0]
        if (place := key(hit, layers[hit.layer])) in shared and not (hit.excusable and place in excused)
    ]


def _keys(hits: Iterable[Hit], key: "Callable[[Hit, Layer], Key]", layers: list[Layer]) -> set[Key]:
    return {key(hit, layers[hit.layer]) for hit in hits}


def _line(hit: Hit, layer: Layer) -> Key:
    return (hit.layer, layer.line_start(hit.offset))


def _sentence(hit: Hit, layer: Layer) -> Key:
    """Sentences end with their segment: the pieces around the hit that share it are searched."""
    starts = layer.sentences.get(hit.segment)
    if starts is None:
        start, end = layer.segment_around(hit.offset)
        starts = layer.sentences[hit.segment] = [begin for begin, _ in sentences(layer.flowing, start, end)]
    return (hit.layer, hit.segment, bisect_right(starts, hit.offset))


_KEYS: dict[Unit, Callable[[Hit, Layer], Key]] = {
    Unit.LINE: _line,
    Unit.SENTENCE: _sentence,
    Unit.SEGMENT: lambda hit, _: (hit.layer, hit.segment),
    Unit.SECTION: lambda hit, _: (hit.layer, hit.section),
    Unit.FILE: lambda _, layer: (layer.path,),
}
