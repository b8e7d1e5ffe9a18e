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
    rb"(?i)(?:^|[^\w-])(?:post|send|upload|submit|report|forward|transmit|deliver|push|pipe|relay|beacon|share|"
    rb"e-?mail)"
    rb"(?:s|ed|ing)?\b[^.!?]*\b(?:to|at|via|into|with)\b[^.!?]{0,60}$|(?:^|[^\w-])(?:POST|PUT|"
    rb"PATCH)\b[\s:`*\"'<(\[]*$"
)
_ASKS = re2.compile(rb"(?:^|[^\w-])(?:GET|DELETE|HEAD)\b[\s:`*\"'<(\[]*$")
#: What people report and submit themselves.
_BY_PEOPLE = re2.compile(
    rb"(?i)\b(?:bugs?|issues?|feedback|pull requests?|PRs?|features?|questions?|vulnerabilit\w+|ideas|suggestions)\b"
)
#: That something must be there, or be done, before the rest works.
_NEEDS = re2.compile(
    rb"(?i)\b(?:pre-?requisites?|requires?|required|requirements?|requiring|must|needs?|needed|mandatory|have to|"
    rb"has to|"
    rb"before (?:you|using|running|starting|first|the|this|that|any\w*|it|we|continu\w+|going on)|beforehand|"
    rb"ahead of|"
    rb"(?:install|download|set ?up)\w* (?:it )?first|first(?:,? (?:install|download|run|get|of all|time|start|use|"
    rb"launch|step)|$)|"
    rb"depends? (?:up)?on|dependenc(?:y|ies)|rel(?:y|ies) (?:up)?on|built on|powered by|expects?|assumes?|one-time|"
    rb"(?:do|does|will|can|is|are)(?: not|n[o']t) (?:\w+ ){0,2}(?:work|run|start|function|load|respond|answer|"
    rb"install|found|there|present|available)|"
    rb"(?:wo|ca)n[o']t (?:\w+ ){0,2}(?:work|run|start|function|load)|"
    rb"(?:not|cannot|won't|nothing|none|refuses?|fails?) (?:\w+ ){0,4}(?:works?|runs?|starts?|functions?|without|"
    rb"until|unless)\b|"
    rb"(?:prints?|returns?|shows?) nothing|(?:stays?|remains?|is|are) (?:disabled|locked|inactive|idle|off|"
    rb"missing)|missing|until|unless|"
    rb"without (?:it|this|that|the|them)|"
    rb"step (?:0|1|one|zero))\b"
)
#: That somebody gets it, or opens where it is got.
_GETS = re2.compile(
    rb"(?i)\b(?:download(?:s|ed|ing|able)?|install(?:s|ed|er|ing|ation)?|unzip|unpack|extract|"
    rb"(?:copy|paste|run|execute) (?:the |this |that |what )?(?:\w+ ){0,3}(?:command|script|installer|snippet|"
    rb"binary|line|one-liner|shows?))\b"
)
_OPENS = re2.compile(
    rb"(?i)\b(?:get|gets|grab|fetch|obtain|pull|take|pick (?:it )?up|visit|open|go to|head (?:over )?to|navigate|"
    rb"browse|follow|"
    rb"paste|launch|load|add|enable|set ?up|import|mount|ships?|shipped|distributed|served|published|provided|"
    rb"comes?|lives?|"
    rb"available|hosted|found|here|from)\b"
)
#: What such an address may be for besides: something to read, or somebody's account.
_NOT_A_PROGRAM = re2.compile(
    rb"(?i)\b(?:api[- ]?keys?|keys?|tokens?|accounts?|sign(?:ing)?[- ]?(?:up|in)|log(?:ging)?[- ]?in|register|"
    rb"subscri\w+|credentials?|"
    rb"oauth|docs?|documentation|reference|guides?|tutorials?|articles?|dashboards?|pricing|plans?|support|"
    rb"issues?|endpoints?|apis?|"
    rb"base url|webhooks?|licen[cs]es?|examples?|e\.g\.|such as|credits?|funds?|wallets?|posts?|pages? of|"
    rb"articles?|reports?|data)\b"
)
#: Files that are run or unpacked.
_PROGRAM_FILE = re2.compile(
    rb"(?i)^[^\s\"'`<>)\]]{0,300}\.(?:zip|7z|rar|t?gz|t?xz|dmg|pkg|msi|exe|deb|rpm|appimage|apk|jar|sh|ps1|bat|"
    rb"cmd|whl|vsix|crx|bin|run|iso)\b"
)
_SENTENCE_END = re2.compile(rb"[.!?][\"')*_`]*\s")
#: An address in code, and one that programs ask.
_IN_CODE = re2.compile(rb"(?:=|\w[\"']?:)\s*[\"'`]+$|\w\([\"'`]?$")
_SERVICE = re2.compile(
    rb"(?i)^\w+://(?:api\.|[^\s/]*/(?:\S*/)?(?:api|v\d+|rest|rpc|graphql|log-?in|sign-?in|accounts?|auth|"
    rb"oauth)\b)|^\S*(?:\{|\.json\b|\.xml\b)"
)
_ADDRESS = re2.compile(rb"https?://[^\s)\"'>`]+")
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
    rb"(?i)(?:\bfind\s|\bfd\s|\blocate\s|\bgrep\s+-\w*r|r?glob\(|walk\(|childitem\b|\btar\s|"
    rb"\bzip\s)[^\n]{0,120}[\s*/\"'`({,]\.env\b"
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
    if _is_required(text, offset, before, around):
        uses.append(CapabilityUse.REQUIRES)
    if not uses and not _ASKS.search(before):
        return False, []
    is_told = polarity_at(layer, layer.piece_at(offset), offset, length) is Polarity.NEUTRAL
    return is_told, uses if is_told else []


def _is_required(text: bytes, offset: int, before: bytes, around: bytes) -> bool:
    """Whether a sentence or the heading above it says that what is got from an address is needed first, in whatever
    words: only an address to read at, or of an account, is none."""
    if not (_NEEDS.search(around) or _NEEDS.search(_heading_above(text, offset))):
        return False
    if _GETS.search(around) or _PROGRAM_FILE.match(text[offset : offset + _BEFORE]):
        return True
    after = text[offset : offset + _BEHIND].partition(b"\n")[0]
    if _ASKS.search(before) or _IN_CODE.search(before) or _SERVICE.match(after):
        return False
    is_opened = _OPENS.search(before + _ADDRESS.sub(b" ", after)) is not None
    return is_opened and _NOT_A_PROGRAM.search(_ADDRESS.sub(b" ", around)) is None


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
