"""Cuts a file's text into pieces, each with the role and the polarity that decide whether a match in it counts.

`markdown` does the prose; this module decides what a file is, and lets everything else be one piece of its role.
Scripts are refined later, by their tokens, and only where something in them matters.
"""

from vskill_scan.model import CodeBlock, Layer, Piece, TextRole
from vskill_scan.reading.carriers import TOO_MANY, carried_by
from vskill_scan.reading.languages import READ, is_test, language_of, role_of
from vskill_scan.reading.markdown import cut_markdown
from vskill_scan.reading.visible_text import Normal


def segment_file(path: str, normal: Normal, *, referenced: bool = False) -> Layer:
    """The layer of one file. `referenced` says that SKILL.md sends the agent to it, whatever its folder."""
    language = language_of(path, normal.text)
    layer = _cut(path, normal.text, language)
    layer.written = normal.written
    layer.facts.extend(normal.facts)
    if is_test(path) and not referenced:
        _as_test(layer)
    return layer


def _as_test(layer: Layer) -> None:
    layer.cut = [Piece(0, len(layer.text), TextRole.TEST, 0)]
    layer.roles = frozenset({TextRole.TEST})


def hidden_layer(path: str, text: bytes, line: int, like: Piece | None = None) -> Layer:
    """Text that was found hidden or encoded at a line. It counts no more than the place where it stood."""
    role = like.role if like is not None and like.role in _KEPT else TextRole.HIDDEN
    warns_from = 0 if like is not None and max(like.warns_from, like.about_from) >= 0 else -1
    piece = Piece(0, len(text), role, 0, warns_from=warns_from)
    block = CodeBlock(0, len(text), "bash")
    return Layer(path, text, [piece], [block], [], text, origin=line, decoded=True, roles=frozenset({role}))


_KEPT = frozenset({TextRole.TEST, TextRole.QUOTE, TextRole.DATA})


def _cut(path: str, text: bytes, language: str) -> Layer:
    if language == "prose":
        return cut_markdown(path, text)
    role = role_of(language)
    carried = carried_by(path, text, language)
    if carried is not None:
        pieces = carried.pieces(role)
        roles = frozenset(piece.role for piece in pieces)
        unread = TOO_MANY if carried.partial else ""
        return Layer(
            path,
            text,
            pieces,
            carried.blocks,
            [],
            bytes(carried.flowing),
            unread=unread,
            roles=roles,
        )
    blocks = (
        [CodeBlock(0, len(text), language)] if language in READ or role_of(language) is TextRole.CODE else []
    )
    return Layer(path, text, [Piece(0, len(text), role, 0)], blocks, [], text, roles=frozenset({role}))
