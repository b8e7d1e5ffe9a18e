"""Notes on a skill's form: what an author should correct in SKILL.md although the registry takes the skill.

Reading the manifest makes them, the static report keeps them with the content, and `scan`, pages, API and MCP show
them. A note never counts in a decision: form says nothing about safety.
"""

import enum
from collections.abc import Mapping

import msgspec


class NoteCode(enum.StrEnum):
    """What a note is about."""

    FRONT_MATTER_MISSING = "front-matter-missing"
    FRONT_MATTER_OPEN = "front-matter-open"
    FRONT_MATTER_NOT_YAML = "front-matter-not-yaml"
    NAME_MISSING = "name-missing"
    NAME_INVALID = "name-invalid"
    DESCRIPTION_MISSING = "description-missing"
    DESCRIPTION_LONG = "description-long"
    FIELD_NOT_TEXT = "field-not-text"


#: What each code means, and what the registry takes instead.
MEANINGS: Mapping[NoteCode, str] = {
    NoteCode.FRONT_MATTER_MISSING: "SKILL.md does not begin with front matter. The folder's name and the first "
    "paragraph are used.",
    NoteCode.FRONT_MATTER_OPEN: "The front matter has no closing line. It is read up to the first empty line.",
    NoteCode.FRONT_MATTER_NOT_YAML: "The front matter is not plain YAML. Its fields are read line by line.",
    NoteCode.NAME_MISSING: "The front matter has no name. The folder's name is used.",
    NoteCode.NAME_INVALID: "Not every client accepts the name. The folder's name is used.",
    NoteCode.DESCRIPTION_MISSING: "There is no description. The first paragraph is used.",
    NoteCode.DESCRIPTION_LONG: "The description has more than 1024 characters. Lists show its beginning.",
    NoteCode.FIELD_NOT_TEXT: "A field that should be text is a list or a table. It is ignored.",
}

#: With one of these the npm client `skills` skips the skill; the other clients install it.
SKIPPED_BY_SKILLS = frozenset(
    {
        NoteCode.FRONT_MATTER_MISSING,
        NoteCode.FRONT_MATTER_OPEN,
        NoteCode.FRONT_MATTER_NOT_YAML,
        NoteCode.NAME_MISSING,
        NoteCode.DESCRIPTION_MISSING,
    }
)


class FormNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing to correct in SKILL.md."""

    code: NoteCode
    #: the field of the front matter, or `front matter`
    field: str
    #: what is wrong, and what the registry took instead
    sentence: str
    #: what the author can do about it
    fix: str
    #: of SKILL.md, from 1
    line: int = 1
