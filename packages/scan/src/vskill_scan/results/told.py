"""What sentences tell an agent to do with an address or with secrets: send something there, install something from
there first, or collect every file of a kind. Read from the words before and around a place, in prose that is to be
followed and does not warn of it."""

from collections.abc import Iterator

import re2

from vskill_core.capability import CapabilityUse
from vskill_scan.hits import polarity_at
from vskill_scan.model import Layer, Polarity, TextRole
from vskill_scan.places import SECRET_PATHS, secret_at

#: Bytes before and behind an address in which its sentence is looked for, and before it the last heading.
_BEFORE, _BEHIND, _HEADING = 400, 200, 2000
#: Of one text.
MOST_TOLD = 500

_SENDS = re2.compile(
    rb"(?i)(?:^|[^\w-])(?:post|send|upload|submit|report|forward|transmit|deliver|push|pipe|relay|beacon|share|e-?mail)"
    rb"(?:s|ed|ing)?\b[^.!?]*\b(?:to|at|via|into|with)\b[^.!?]{0,60}$|(?:^|[^\w-])(?:POST|PUT|PATCH)\b[\s:`*\"'<(\[]*$"
)
_ASKS = re2.compile(rb"(?:^|[^\w-])(?:GET|DELETE|HEAD)\b[\s:`*\"'<(\[]*$")
#: What people report and submit themselves.
_BY_PEOPLE = re2.compile(
    rb"(?i)\b(?:bugs?|issues?|feedback|pull requests?|PRs?|features?|questions?|vulnerabilit\w+|ideas|suggestions)\b"
)
_NEEDS = re2.compile(
    rb"(?i)\b(?:pre-?requisites?|requires?|required|requirements?|must|needs?|needed|mandatory|before (?:you|using|"
    rb"running|starting|first|the|this|anything)|"
    rb"(?:install|download|set up)\w* (?:it )?first|first,? (?:install|download)|"
    rb"depends on|dependency|(?:not|cannot|won't|nothing) works?\b[^.]{0,30}\bwithout|without (?:it|this))\b"
)
_GETS = re2.compile(
    rb"(?i)\b(?:download(?:s|ed|ing|able)?|install(?:s|ed|er|ing|ation)?|unzip|extract|"
    rb"(?:copy|paste|run|execute) (?:the |this |that )?(?:following )?(?:command|script|installer|snippet|binary))\b"
)
_SENTENCE_END = re2.compile(rb"[.!?][\"')*_`]*\s")
_REFERENCE = re2.compile(rb"^\s*\[([^\]\n]{1,60})\]:\s*<?$")

_COLLECTS = re2.compile(
    rb"(?i)\b(?:collect|gather|harvest|grab|dump|archive|zip|bundle|tar|upload|send|attach|exfiltrate|scrape|steal)"
    rb"(?:s|ed|ing)?\b[^.!?]*$"
)
_READS = re2.compile(
    rb"(?i)\b(?:read|copy|cat|open|load|take|include|extract|find|search)(?:s|ing)?\b[^.!?]*$"
)
#: Stores of secrets as prose names them, and the kind of each.
_SPOKEN = re2.compile(
    rb"(?i)((?:^|[\s`\"'(/*])\.env\b)|(\bssh (?:private )?keys?\b)|"
    rb"(\b(?:seed|recovery|mnemonic) phrases?\b|\bwallet (?:files?|keys?)\b)|"
    rb"(\b(?:browser|saved) (?:cookies|passwords|logins|history)\b)|"
    rb"(\b(?:all|the|every|whole|user.?s) (?:\w+ )?environment variables\b)|(\bkeychain\b)"
)
_KINDS = ("dotenv", "ssh", "wallet", "browser", "env", "keychain")
#: Commands and calls that find every file of that name.
_FINDS_ALL = re2.compile(
    rb"(?i)(?:\bfind\s|\bfd\s|\blocate\s|\bgrep\s+-\w*r|r?glob\(|walk\(|childitem\b|\btar\s|\bzip\s)[^\n]{0,120}[\s*/\"'`({,]\.env\b"
)


def told_uses(layer: Layer, offset: int, length: int) -> tuple[bool, list[CapabilityUse]]:
    """Whether a sentence tells to use an address, and how."""
    text = layer.flowing
    before, around = _sentence(text, offset), _paragraph(text, offset)
    if (reference := _REFERENCE.match(before)) is not None:
        at = text.find(b"][" + reference.group(1) + b"]")
        at = at if at >= 0 else text.find(b"[" + reference.group(1) + b"]")
        before, around = _sentence(text, at), _paragraph(text, at)
    uses = []
    if _SENDS.search(before) and not _BY_PEOPLE.search(before):
        uses.append(CapabilityUse.SENDS)
    if _GETS.search(around) and (_NEEDS.search(around) or _NEEDS.search(_heading_above(text, offset))):
        uses.append(CapabilityUse.REQUIRES)
    if not uses and not _ASKS.search(before):
        return False, []
    is_told = polarity_at(layer, layer.piece_at(offset), offset, length) is Polarity.NEUTRAL
    return is_told, uses if is_told else []


def _sentence(text: bytes, offset: int) -> bytes:
    """What stands before a place in its sentence."""
    start = max(text.rfind(b"\n", max(0, offset - _BEFORE), offset) + 1, offset - _BEFORE, 0)
    before = text[start:offset]
    ends = [match.end() for match in _SENTENCE_END.finditer(before)]
    return before[ends[-1] :] if ends else before


def _paragraph(text: bytes, offset: int) -> bytes:
    low, high = max(0, offset - _BEFORE), offset + _BEHIND
    start, stop = text.rfind(b"\n", low, offset) + 1, text.find(b"\n", offset, high)
    return text[max(start, low) : stop if stop >= 0 else high]


def _heading_above(text: bytes, offset: int) -> bytes:
    low = max(0, offset - _HEADING)
    start = text.rfind(b"\n#", low, offset)
    return text[start + 1 : text.find(b"\n", start + 1)] if start >= 0 else b""


def told_secrets(layer: Layer) -> Iterator[tuple[str, int]]:
    """Kinds of secrets that sentences tell to collect or read, with their places. Of `.env` files only collecting
    counts: reading one is how programs are configured."""
    text = layer.flowing
    left = MOST_TOLD
    for pattern in (_SPOKEN, SECRET_PATHS):
        for match in pattern.finditer(text):
            left -= 1
            if left < 0:
                return
            at = match.start()
            named = match.lastindex
            what = _KINDS[named - 1] if named else secret_at(match.group().decode("utf-8", "replace"))
            if what and _is_wanted(layer, what, at, match.end() - at):
                yield "every-dotenv" if what == "dotenv" else what, at


def _is_wanted(layer: Layer, what: str, at: int, length: int) -> bool:
    before = _sentence(layer.flowing, at)
    verbs = (_COLLECTS,) if what in {"dotenv", "env", "keychain"} else (_COLLECTS, _READS)
    if not any(verb.search(before) for verb in verbs):
        return False
    piece = layer.piece_at(at)
    is_told = piece.role is TextRole.FOLLOW or piece.role is TextRole.HIDDEN
    return is_told and polarity_at(layer, piece, at, length) is Polarity.NEUTRAL


def finds_all(text: bytes) -> Iterator[int]:
    """Where code collects every `.env` file."""
    for match in _FINDS_ALL.finditer(text) if b".env" in text.lower() else ():
        yield match.start()
