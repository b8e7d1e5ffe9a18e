"""Version numbers by the rules of semantic versioning, and which one a new version gets.

Publishing asks `next_version` with the numbers that are taken and what the author wrote in the front matter.
"""

from collections.abc import Collection

import msgspec

from vskill_core.errors import LowerVersion, RecordMalformed

FIRST_VERSION = "1.0.0"
_CORE_NUMBERS = 3
_MAX_VERSION_LENGTH = 64
#: of each number in a front matter; our own bumps may go beyond it and must still be read back
_DECLARED_DIGITS = 9
_STORED_DIGITS = 18


class Semver(msgspec.Struct, frozen=True):
    """A version number by the rules of semantic versioning; build metadata is not kept."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[str, ...] = ()

    def __str__(self) -> str:
        core = f"{self.major}.{self.minor}.{self.patch}"
        return f"{core}-{'.'.join(self.prerelease)}" if self.prerelease else core

    @property
    def precedence(self) -> tuple[int, int, int, bool, tuple[tuple[bool, int, str], ...]]:
        """What to compare by: a release is above its prereleases, numbers are below words."""
        words = tuple((not p.isdigit(), int(p) if p.isdigit() else 0, p) for p in self.prerelease)
        return self.major, self.minor, self.patch, not self.prerelease, words

    def bumped(self) -> "Semver":
        return Semver(self.major, self.minor, self.patch + 1)


def parse_semver(text: str, digits: int = _DECLARED_DIGITS) -> Semver | None:
    """None for whatever is not a version of reasonable size."""
    text = text.strip()
    if len(text) > _MAX_VERSION_LENGTH or not text.isascii():
        return None
    text, plus, build = text.partition("+")
    core, dash, prerelease = text.partition("-")
    numbers, words = core.split("."), prerelease.split(".") if dash else []
    if len(numbers) != _CORE_NUMBERS or not all(_is_plain_number(number, digits) for number in numbers):
        return None
    if not all(_is_prerelease_word(word, digits) for word in words) or (
        plus and not all(map(_is_word, build.split(".")))
    ):
        return None
    major, minor, patch = map(int, numbers)
    return Semver(major, minor, patch, tuple(words))


def next_version(
    numbers: Collection[str], front_matter_version: str | None, last_declared: str | None = None
) -> tuple[str, str]:
    """The next number and a notice, empty where the number is the front matter's.

    `numbers` are all numbers ever published, in whatever status. `last_declared` is the front matter's
    version of the latest one: an author who leaves it at 1.0.0 gets 1.0.1, then 1.0.2, and is not told that
    1.0.0 is lower.
    """
    declared = None if front_matter_version is None else parse_semver(front_matter_version)
    why = _why_not_declared(front_matter_version)
    published = [_parse_stored(number) for number in numbers]
    if not published:
        return (str(declared), "") if declared else (FIRST_VERSION, f"{why}; {FIRST_VERSION} is used")
    highest = max(published, key=lambda version: version.precedence)
    if declared and declared.precedence > highest.precedence:
        return str(declared), ""
    if declared:
        _refuse_lower(declared, highest, last_declared)
        why = f"version {declared} of the front matter is already published"
    return str(highest.bumped()), f"{why}; {highest.bumped()} is used"


def version_note(notice: str) -> str:
    """The notice in sentences, for an author whose front matter gives a version that is not used; otherwise empty."""
    fix = "Write a higher version into SKILL.md to choose it yourself."
    return f"{notice[:1].upper()}{notice[1:]}. {fix}" if notice else ""


def listed_number(last: str, current: str | None, *, status_at: int, updated_at: int) -> str:
    """The number of a skill in lists that clients update by: that of its last version as long as this is current and
    nobody withdrew or restored it (`status_at`, 0 where nobody did). From then on it is one between that number and
    the next, which grows with each change of the skill (`updated_at`)."""
    if last == current and not status_at:
        return last
    version = parse_semver(last, _STORED_DIGITS)
    if version is None:
        return f"{last}.{updated_at}"
    above = f"{version}.0" if version.prerelease else f"{version.bumped()}-0"
    return f"{above}.{updated_at}"


def _parse_stored(number: str) -> Semver:
    """Passing over a number that cannot be read could give it out a second time."""
    version = parse_semver(number, _STORED_DIGITS)
    if version is None:
        raise RecordMalformed(f"A published version has the number {number!r}.", reason="not a version")
    return version


def _refuse_lower(declared: Semver, highest: Semver, last_declared: str | None) -> None:
    floor = parse_semver(last_declared or "") or highest
    if declared.precedence < floor.precedence:
        message = f"The front matter's version {declared} is lower than {floor}, which is already published."
        raise LowerVersion(message, declared=str(declared), published=str(highest))


def _why_not_declared(text: str | None) -> str:
    if text is None or not text.strip():
        return "the front matter has no version"
    return "the front matter's version is not a semantic version"


def _is_plain_number(text: str, digits: int) -> bool:
    return text.isdigit() and len(text) <= digits and str(int(text)) == text


def _is_word(text: str) -> bool:
    return text.replace("-", "0").isalnum()


def _is_prerelease_word(text: str, digits: int) -> bool:
    return _is_word(text) and (not text.isdigit() or _is_plain_number(text, digits))
