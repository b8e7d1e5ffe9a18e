"""Foreign prose without its Markdown marks, for lists, cards and tables: one line, in which nothing is a heading or a
link.

Each pattern keeps what it took (`++`), so that any text takes time by its length. Underscores stay: in descriptions
they belong to names (`__init__`) more often than to emphasis.
"""

import re  # noqa: TID251 - the client comes without re2, and no pattern here gives back what it took

#: An image or a link, whose words stay; its address may hold one pair of parentheses in another.
_LINK = re.compile(r"!?+\[([^\[\]]*+)\]\((?:[^()]++|\([^()]*+\))*+\)")
#: What begins a line of its own: a heading, a quotation, a fence with its language.
_BEGINNING = re.compile(r"^[ \t]*+(?:#{1,6}+[ \t]++|(?:>[ \t]*+)++|```++\w*+$)", re.MULTILINE)
#: An escaped sign, code between as many backticks, or a mark that may emphasise.
_MARK = re.compile(r"\\([!-/:-@\[-`{-~])|(?<!`)(`++)([^`]++)\2(?!`)|(\*++|~~++)")
#: Beside these a mark does not emphasise: it multiplies, or is part of a path such as `src/**/*.py`.
_WORD, _OUTSIDE = re.compile(r"[A-Za-z0-9/]"), re.compile(r"[\s/.]")


def plain_text(text: str) -> str:
    """The words of a text, in one line."""
    text = _BEGINNING.sub("", _LINK.sub(r"\1", _LINK.sub(r"\1", text)))
    pieces: list[str] = []
    opened: dict[str, int] = {}
    at = 0
    for found in _MARK.finditer(text):
        pieces.append(text[at : found.start()])
        at = found.end()
        sign, _, code, mark = found.groups()
        before, after = text[found.start() - 1 : found.start()] or " ", text[at : at + 1] or " "
        if mark is None:
            pieces.append(sign or code)
        elif mark in opened and not before.isspace() and before != "/" and not _WORD.match(after):
            pieces[opened.pop(mark)] = ""
        else:
            if not _OUTSIDE.match(after) and not _WORD.match(before):
                opened[mark] = len(pieces)
            pieces.append(mark)
    return " ".join("".join((*pieces, text[at:])).split())
