"""Joins what was found: given the places where each leaf of a rule holds, the places where the rule itself holds.

A condition is worked out from the leaves upwards as sets of places; `all` keeps those of its first member whose
unit (line, sentence, segment, section, file or skill) holds every member and nothing of `none`.
"""

from collections.abc import Callable, Iterable

from vskill_platform.scan.model import Hit, Layer, Unit
from vskill_platform.scan.polarity import sentence_around
from vskill_platform.scan.ruleset import Leaf, Node

Hits = dict[int, list[Hit]]
Key = tuple[object, ...]


def places(node: Node | Leaf, hits: Hits, layers: list[Layer]) -> list[Hit]:
    """Where the condition holds."""
    if isinstance(node, Leaf):
        return hits.get(node.number, [])
    groups = [places(child, hits, layers) for child in node.all]
    if node.any:
        groups.append([hit for child in node.any for hit in places(child, hits, layers)])
    if not all(groups):
        return []
    forbidden = [hit for child in node.none for hit in places(child, hits, layers)]
    if len(groups) == 1 and not forbidden:
        return groups[0]
    key = _KEYS[node.within]
    shared = set.intersection(*(_keys(group, key, layers) for group in groups))
    shared -= _keys(forbidden, key, layers)
    return [hit for hit in groups[0] if key(hit, layers[hit.layer]) in shared]


def _keys(hits: Iterable[Hit], key: "Callable[[Hit, Layer], Key]", layers: list[Layer]) -> set[Key]:
    return {key(hit, layers[hit.layer]) for hit in hits}


def _line(hit: Hit, layer: Layer) -> Key:
    return (hit.layer, layer.line_start(hit.offset))


def _sentence(hit: Hit, layer: Layer) -> Key:
    """Sentences end with their segment: the pieces around the hit that share it are searched."""
    start, end = layer.segment_around(hit.offset)
    return (hit.layer, sentence_around(layer.flowing, start, end, hit.offset))


_KEYS: dict[Unit, Callable[[Hit, Layer], Key]] = {
    Unit.LINE: _line,
    Unit.SENTENCE: _sentence,
    Unit.SEGMENT: lambda hit, _: (hit.layer, hit.segment),
    Unit.SECTION: lambda hit, _: (hit.layer, hit.section),
    Unit.FILE: lambda _, layer: (layer.path,),
    Unit.SKILL: lambda _, __: (),
}
