"""What texts and places are called: slugs, plain names, and the note to an author whose folder and SKILL.md differ."""

import hashlib
import unicodedata

from vskill_core.identity import Identity

MAX_SLUG = 100
#: Length limit of a skill's name, by the Agent Skills specification and its clients.
NAME_LENGTH = 64
#: Hexadecimal digits that replace a text without a usable letter.
_MARK = 8
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
_NEUTRAL_MARKS = frozenset("-._")
#: Translates ASCII characters that are not allowed in a plain name.
_ASCII_PLAIN = {code: "-" for code in range(128) if chr(code) not in _PLAIN}
_ASCII_SLUG = {code: "-" for code in range(128) if not (chr(code).isalnum() or chr(code) in _NEUTRAL_MARKS)}


def slug_of(identity: Identity) -> str:
    """The folder that holds SKILL.md, or the repository's name at the root, without case."""
    return slugify(identity.path.rpartition("/")[2] or identity.repo)


def slugify(text: str) -> str:
    """Letters, digits, `-`, `.` and `_`; all else becomes a `-`, and an empty result becomes `skill`."""
    if text.isascii():
        dashed = text.lower().translate(_ASCII_SLUG)
    else:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        dashed = "".join(c if _belongs_in_slug(c) else "-" for c in folded)
    joined = "-".join(part for part in dashed.split("-") if part)
    return joined[:MAX_SLUG].strip("-.") or "skill"


def is_plain_name(name: str) -> bool:
    """1 to 64 of a-z, 0-9 and single hyphens between them: what every client accepts."""
    return len(name) <= NAME_LENGTH and _PLAIN.issuperset(name) and all(name.split("-"))


def plain_name(text: str) -> str:
    """The plain name nearest to a text (deterministic); `skill-` and a hash if no letter is left."""
    hyphened = hyphenate(text)[:NAME_LENGTH].strip("-")
    return hyphened or f"skill-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:_MARK]}"


def hyphenate(text: str) -> str:
    """Lower-case letters, digits and single hyphens for everything else; may be empty."""
    lower = text.lower()
    if text.isascii():
        plain = lower.translate(_ASCII_PLAIN)
    else:
        plain = "".join(char if char in _PLAIN else "-" for char in lower)
    return "-".join(part for part in plain.split("-") if part)


def name_note(slug: str, declared: str | None) -> str | None:
    """What to tell an author whose folder and SKILL.md give two names; None where they agree."""
    if not declared or slugify(declared) == slug.partition("~")[0]:
        return None
    return f"It is published as {slug}, the name of its folder; SKILL.md calls it {declared}."


def _belongs_in_slug(char: str) -> bool:
    """Combining marks too: many scripts write their vowels with them."""
    return char.isalnum() or char in _NEUTRAL_MARKS or unicodedata.category(char).startswith("M")
