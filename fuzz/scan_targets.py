"""The readers of the scanner, each by itself: code of every language, and files that carry code. `targets` runs them
beside the others.
"""

from collections.abc import Iterator

from fuzz.promises import hold
from vskill_scan.code.flows import read_code
from vskill_scan.code.statements import python_statements, shell_statements
from vskill_scan.model import Layer, Piece, TextRole
from vskill_scan.reading.carriers import carried_by
from vskill_scan.reading.code_roles import SPOKEN, role_at
from vskill_scan.reading.languages import language_of
from vskill_scan.reading.segments import segment_file
from vskill_scan.reading.visible_text import decode_text, normalise_text
from vskill_scan.results.command_lines import blank_quoted

#: One name for each language with a reader; the first byte of an input chooses.
PROGRAMS = (
    *(
        "a.sh",
        "a.py",
        "a.js",
        "a.ts",
        "a.rb",
        "a.pl",
        "a.php",
        "a.lua",
        "a.ps1",
        "a.go",
        "a.vbs",
        "a.bat",
    ),
    *("a.applescript", "SKILL.md", "a.awk"),
)
CARRIERS = (
    *(
        "a.ipynb",
        "Makefile",
        "Dockerfile",
        ".github/workflows/a.yml",
        "settings.json",
        "package.json",
        "a.service",
    ),
    *(".gitconfig", "a.plist", "a.html", "a.svg", "a.desktop", "docker-compose.yml", "hooks.json"),
)


def pieces_of(layer: Layer) -> Iterator[tuple[Piece, int]]:
    """Pieces with an offset at which somebody asks for them. They lie in the text, in order and without overlap."""
    before = None
    for offset in range(0, len(layer.text), 97):
        piece = layer.piece_at(offset)
        hold(piece.start <= piece.end <= len(layer.text), "a piece lies in the text")
        hold(before in (None, piece) or before.end <= piece.start, "pieces follow one another")
        before = piece
        yield piece, offset


def chosen(names: tuple[str, ...], data: bytes) -> tuple[str, bytes]:
    """The name that the first byte chooses, and the rest."""
    return (names[data[0] % len(names)], data[1:]) if data else (names[0], b"")


def code(data: bytes) -> None:
    """Code is read to facts that lie in it."""
    path, written = chosen(PROGRAMS, data)
    text = decode_text(written, named_text=True)
    if text is None:
        return
    layer = segment_file(path, normalise_text(text))
    read_code(layer)
    for fact in layer.facts:
        hold(0 <= fact.offset <= fact.offset + fact.length <= len(layer.text), "a fact stands in the text")
    for block in layer.blocks:
        statements = python_statements if block.language == "python" else shell_statements
        at = block.start
        for start, end, *_ in statements(layer.text, block.start, block.end):
            hold(at <= start <= end <= block.end, "statements follow one another in their block")
            at = end
    hold(len(blank_quoted(layer.text)) == len(layer.text), "what is blanked keeps its length")
    for piece, offset in pieces_of(layer):
        hold(
            role_at(layer, piece, offset) in {piece.role, *SPOKEN},
            "code only says what is a comment or a list",
        )


def carrier(data: bytes) -> None:
    """What a file carries lies in it, and what is blanked keeps its length and its lines."""
    path, written = chosen(CARRIERS, data)
    text = decode_text(written)
    if text is None:
        return
    plain = normalise_text(text).text
    carried = carried_by(path, plain, language_of(path, plain))
    if carried is None:
        return
    hold(len(carried.flowing) == len(plain), "blanked text keeps its length")
    for block in carried.blocks:
        hold(0 <= block.start <= block.end <= len(plain), "a block lies in the text")
    at = 0
    for piece in carried.pieces(TextRole.DATA):
        hold(piece.start == at, "pieces follow one another without gaps")
        at = piece.end
    hold(at == len(plain), "pieces cover the text")
