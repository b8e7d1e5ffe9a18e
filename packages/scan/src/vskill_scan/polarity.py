"""Does a text say to do a thing, or does it warn of it? Told by words in the sentence, in the line that leads a list
or a fence, and in the headings above.

Two kinds of words: some show that a sentence speaks *about* bad things wherever they stand ("is malicious"),
others deny only what follows them in the same clause ("never run"). A denial that is itself part of what a rule
looks for ("do not tell the user") does not cover it, because the denial begins where the match begins.

An author can write any title or warning, so these excuse little: not what runs at load time, not what a sentence tells
to do in spite of the warning in front of it, and below a mere "Avoid" no block of commands at all. A block under a
title about bad things, and code that a comment calls bad, need a sentence that says so or better code beside them, and
none that asks for them. A denial that urges on ("do not skip this") denies nothing.
"""

import enum
from collections.abc import Iterator

import msgspec
import re2

LONGEST_TITLE = 70

_ABOUT = re2.compile(
    rb"(?i)\b(?:malicious|malware|dangerous|suspicious|unsafe|insecure|harmful|untrusted|vulnerab\w+|"
    rb"exploit(?:s|ed|ation)?"
    rb"|attack(?:s|er|ers|ing)?|injections?|threats?|red[ -]flags?|anti-?patterns?|indicators? of|phishing|"
    rb"backdoors?"
    rb"|detect(?:s|ed|ing|ion|ions|or)? (?:\w+ ){0,4}(?:patterns?|attempts?|commands?|code|prompts?|"
    rb"phrases|strings|calls|usage|use)"
    rb"|(?:flag|block|reject|den(?:y|ies)|refuse|forbid|disallow|prohibit)(?:s|ed|ing|es)? (?:\w+ ){0,3}"
    rb"(?:any|all|if|when|requests?|attempts?|commands?|skills?|scripts?|inputs?|code|patterns?|following|these|"
    rb"such|things)"
    rb"|(?:is|are|was) (?:blocked|rejected|flagged|denied|refused|forbidden|prohibited|disallowed|banned)"
    rb"|block-?lists?|deny-?lists?|blacklists?|forbidden|prohibited|not (?:safe|allowed|permitted|acceptable)"
    rb"|bad (?:practices?|examples?|patterns?|ideas?)|common mistakes?|example of an? (?:attack|injection)|"
    rb"pitfalls?"
    rb"|scan(?:s|ning)? (?:\w+ ){0,3}for|grep(?:s|ping)? for|look(?:s|ing)? for (?:signs|patterns|calls|"
    rb"commands|strings|phrases)"
    rb"|risk(?:y|s)? of|would (?:steal|leak|exfiltrate|delete|destroy)|security (?:review|audit|scan)\w*)\b"
    rb"|\xe2\x9d\x8c|\xf0\x9f\x9a\xab|\xe2\x9b\x94"
)
_DENIAL = re2.compile(
    rb"(?i)\b(?:never|do not|don't|must not|mustn't|should not|shouldn't|may not|avoid(?:s|ing)?|refrain from"
    rb"|instead of|rather than|no longer|stop (?:\w+ing)|prevent(?:s|ing)?|protect(?:s|ing)? (?:against|from)"
    rb"|guard(?:s|ing)? against|beware of|not to|without ever|nor"
    # That a thing cannot work denies nothing that the text asks for; that it cannot send does.
    rb"|(?:does not|doesn't|will not|won't|cannot|can't|can not) (?:ever )?(?:send|upload|read|access|"
    rb"store|collect|share"
    rb"|transmit|delete|modify|execute|write|touch|require|need|include|contain|log|leak|expose|steal|"
    rb"exfiltrate|install))\b"
)
#: Denials that ask for more: what follows them still stands.
_URGES = re2.compile(
    rb"(?i)\b(?:never|do not|don't|must not|mustn't|should not|shouldn't|may not|cannot|can't|not to|no need to"
    rb"|avoid|stop)\s+(?:worry\w*|mind|skip\w*|forget\w*|hesitat\w*|miss(?:ing)?|delay\w*|interrupt\w*"
    rb"|clos(?:e|ing)|cancel\w*|panic\w*|wait\w*|stop\w*"
    rb"|ignor\w*|omit\w*|quit|exit|turn off|power off|be (?:afraid|alarmed|scared|worried))\b"
)
#: At the end of what stands before something: words that tell to do it, at the beginning of a sentence or clause.
_TELLS = re2.compile(
    rb"(?i)(?:^|[.,;!?]\s*|\n\s*|\b(?:then|please|must|should|first|now|just|simply|immediately|so|always|need to"
    rb"|have to)\s+)(?:[-*+>]\s+|[0-9]{1,3}[.)]\s+)?[*_]{0,2}"
    rb"(?:run|execute|paste|enter|type|launch|invoke|use|start|install|download)\b"
    rb"[^.`\n]{0,60}$"
)
#: What may stand between words that tell and what they tell to do.
_BETWEEN = b" \t\n`:*_\"'("
#: Of a stretch, in which words that tell to do something stand at its end.
_TOLD_BYTES = 1000
_GAP = re2.compile(rb"\s{200}")
#: Titles that ask for something, whatever else they speak about.
_ACTS = re2.compile(
    rb"(?i)\b(?:set-?up|install\w*|protection|prevention|fix(?:es)?|updates?|removal|prerequisites?|required|requirements?|"
    rb"quick ?start|getting started|usage)\b"
)
_EITHER = re2.compile(_ABOUT.pattern + b"|" + _DENIAL.pattern)
#: Where what was denied ends, and something else is asked for.
_TURN = re2.compile(
    rb"(?i);|\bbut\b|\binstead\b(?: [^o]|[,.:])|[,-] ?(?:just|simply|always|run|use|then|and then|proceed|"
    rb"immediately|please)\b"
)
#: Titles of chapters about bad things: what stands below is what they are about, code as well as prose.
_SUBJECT = re2.compile(
    rb"(?i)\b(?:red flags?|anti-?patterns?|threats?|attacks?|vulnerab\w+|malicious|malware|dangerous|"
    rb"forbidden|prohibited|bad|unsafe|insecure|indicators?|iocs?|detections?|detected|blocked|blocklists?"
    rb"|denied|deny-?lists?|not allowed|wrong|suspicious|injections?|exploits?|abuse)\b"
    rb"|\xe2\x9d\x8c|\xf0\x9f\x9a\xab"
)
#: Titles that deny or caution. Below them prose is a warning; a block of commands needs a sentence that says so.
_CAUTION = re2.compile(
    rb"(?i)\b(?:never|don'?ts?|do not|avoid|not to|mistakes?|pitfalls?|guardrails?|what to look for|risks?"
    rb"|security (?:checks?|checklists?|rules|review|audit|patterns|warnings?|scan\w*))\b"
)
#: Text that asks for what follows it, whatever the title above.
_ASKS = re2.compile(
    rb"(?i)\b(?:run|execute|paste|enter|type|start|launch|install|download|copy|apply|perform|follow)\s+"
    rb"(?:(?:the\s+)?following|this|these|it|them|below|command|script|first|once|now|immediately|both|all)\b"
    rb"|\b(?:before\s+(?:you|using|running|anything)|first\s+(?:step|run|of all)|prerequisites?|(?:is|are)\s+required"
    rb"|you\s+(?:must|need\s+to|have\s+to|should)|make\s+sure\s+to|to\s+(?:set\s+up|fix|repair|enable|activate|begin|start)\b)"
)
_EXAMPLE = re2.compile(
    rb"(?i)\b(?:examples?|e\.g\.|for instance|such as|(?:instructions|messages|requests|things|texts?) like|sample"
    rb"|output|looks like|template|format|response|"
    rb"user (?:says|asks|input)"
    rb"|phrases?|prompts? like|trigger(?:s|ed)?)\b"
)
_BAD_COMMENT = re2.compile(
    rb"(?i)^\s*(?:#|//|--|;|rem\b|/\*|<!--)+\s*(?:\xe2\x9d\x8c|\xf0\x9f\x9a\xab|(?:.{0,20}\b)?"
    rb"(?:bad|wrong|never|don't|do not|avoid|vulnerable|unsafe|insecure|dangerous|malicious|incorrect|"
    rb"anti-?pattern|attack(?:er)?)\b)"
)
_GOOD_COMMENT = re2.compile(
    rb"(?i)^\s*(?:#|//|--|;|rem\b|/\*)+\s*(?:\xe2\x9c\x85|(?:.{0,12}\b)?(?:good|correct|safe|secure|right|"
    rb"better|fixed|instead|do this)\b)"
)
_SENTENCE = re2.compile(rb"[.!?][\"')*_`]*\s+|\n\s*\n")


def speaks_about(text: bytes) -> bool:
    """Whether a text is about bad things, or denies something."""
    return _ABOUT.search(text) is not None or _denial_from(text, 0, len(text)) is not None


def tells(text: bytes) -> bool:
    """Whether a text ends by telling to do what follows it."""
    return tells_before(text, 0, len(text))


def tells_before(text: bytes, start: int, end: int) -> bool:
    """The same of a stretch, of which only the end is looked at: it may be long, and be asked about again and again."""
    end = _stripped_end(text, start, end)
    cut = max(start, end - _TOLD_BYTES)
    stretch = text[cut:end]
    # Nobody leaves so much space within a sentence but to part the words that tell from what they tell to do.
    return _TELLS.search(stretch) is not None or (cut > start and _GAP.search(stretch) is not None)


def _stripped_end(text: bytes, start: int, end: int) -> int:
    """Where the stretch ends without what may stand between it and what follows."""
    while start < end:
        last = text[max(start, end - _TOLD_BYTES) : end]
        if kept := last.rstrip(_BETWEEN):
            return end - len(last) + len(kept)
        end -= len(last)
    return start


def _denial_from(text: bytes, start: int, end: int) -> tuple[int, int] | None:
    """Where the first denial begins and ends that does not urge on."""
    while match := _DENIAL.search(text, start, end):
        if not _URGES.match(text, match.start(), end):
            return match.start(), match.end()
        start = match.end()
    return None


def warnings(text: bytes) -> Iterator[int]:
    """Where words begin that speak about bad things or deny something; none goes over the end of a line."""
    for match in _EITHER.finditer(text):
        yield match.start()


class Title(enum.IntEnum):
    """What a title says about what stands below it."""

    PLAIN = 0
    CAUTION = 1
    SUBJECT = 2


def title_says(text: bytes) -> Title:
    """Whether a title announces bad things; a whole sentence set as a heading is no title."""
    if len(text) > LONGEST_TITLE:
        return Title.PLAIN
    if _SUBJECT.search(text):
        return Title.PLAIN if _ACTS.search(text) else Title.SUBJECT
    return Title.CAUTION if _CAUTION.search(text) and not _ACTS.search(text) else Title.PLAIN


def title_acts(text: bytes) -> bool:
    """Whether a title asks for something, whatever else it speaks about."""
    return _ACTS.search(text) is not None


def shows_better(text: bytes) -> bool:
    """Whether a comment in the code calls some of it good."""
    good = (
        line for line in text.split(b"\n") if line.lstrip()[:1] in b"#/-;rR" and _GOOD_COMMENT.search(line)
    )
    return any(not _BAD_COMMENT.search(line) for line in good)


def asks(text: bytes) -> bool:
    """Whether a text asks for what follows it."""
    return tells(text) or (_ASKS.search(text) is not None and not speaks_about(text))


def gives_example(text: bytes) -> bool:
    return _EXAMPLE.search(text) is not None


def sentences(text: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where each sentence of a stretch begins and ends."""
    at = start
    for match in _SENTENCE.finditer(text, start, end):
        yield at, match.end()
        at = match.end()
    if at < end:
        yield at, end


def is_about(text: bytes, start: int, end: int) -> bool:
    """Whether this stretch speaks about bad things."""
    return start < end and _ABOUT.search(text, start, end) is not None


class AboutSpan(msgspec.Struct, frozen=True, gc=False):
    """Where the first and the last words stand in a stretch that speak about bad things."""

    first: tuple[int, int]
    last: tuple[int, int]
    end: int

    @classmethod
    def of(cls, text: bytes, start: int, end: int) -> "AboutSpan | None":
        """All of it is read once, however many places of it somebody asks about."""
        found = [match.span() for match in _ABOUT.finditer(text, start, end)]
        return cls(found[0], found[-1], end) if found else None

    def follows(self, text: bytes, offset: int) -> bool:
        """Whether such words begin at the offset or behind it."""
        if offset <= self.last[0]:
            return True
        return offset < self.last[1] and is_about(text, offset, self.end)

    def precedes(self, text: bytes, offset: int) -> bool:
        """Whether such words end before the offset."""
        if offset >= self.first[1]:
            return True
        return offset > self.first[0] and is_about(text[self.first[0] : offset], 0, offset - self.first[0])


def warned_stretches(text: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The stretches of one sentence, each with the offset from which something in it is denied, or -1."""
    at = start
    while at < end:
        denial = _denial_from(text, at, end)
        if denial is None:
            yield at, end, -1
            return
        turn = _TURN.search(text, denial[1], end)
        stop = turn.end() if turn else end
        # One past the start: a match that begins with the denial itself is not denied by it.
        yield at, stop, denial[0] + 1
        at = stop


def last_sentence(text: bytes) -> bytes:
    """The end of a paragraph: what leads to the block that follows."""
    at = 0
    stripped = text.rstrip()
    for match in _SENTENCE.finditer(stripped):
        at = match.end()
    return stripped[at:]


def marked_lines(text: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Stretches of code under a comment that calls them bad, up to an empty line or one that calls the rest good."""
    since = -1
    at = start
    while at < end:
        stop = text.find(b"\n", at, end) % (end + 1)
        line = text[at:stop]
        if not line.strip():
            if since >= 0:
                yield since, at
            since = -1
        elif line.lstrip()[:1] in b"#/-;r<R":
            if since < 0 and _BAD_COMMENT.search(line) and not _URGES.search(line):
                since = at
            elif since >= 0 and _GOOD_COMMENT.search(line):
                yield since, at
                since = -1
        at = stop + 1
    if since >= 0:
        yield since, end
