"""No address of ours stands where a skill's or an owner's name can stand, unless nobody can be given that name."""

from collections.abc import Iterator

from vskill_platform.domain.canonical_names import RESERVED_OWNERS
from vskill_platform.domain.skills.names import candidate_names
from vskill_platform.web.app import ENDPOINTS

#: Parts of an address that are names which people choose.
_CHOSEN = {"{owner}", "{name}", "{slug}"}
#: A skill `ann/versions/diff` is asked for by its short name; no other one is hidden by these.
_KNOWN = {"/api/v1/skills/{name}/versions/compare", "/api/v1/skills/{name}/versions/diff"}


def hidden_names() -> Iterator[tuple[str, str]]:
    """Each word of an address that another address would take for a name, with that part of the other one."""
    paths = {tuple(one.path.strip("/").split("/")) for one in ENDPOINTS if one.path not in _KNOWN}
    for path in paths:
        for other in paths - {path}:
            if len(path) != len(other) or not all(map(_may_be, other, path)):
                continue
            pairs = zip(other, path, strict=True)
            yield from ((word, part) for part, word in pairs if part in _CHOSEN and not word.startswith("{"))


def _may_be(part: str, word: str) -> bool:
    return part.startswith("{") or part == word


def test_no_owner_or_skill_can_be_called_as_an_address_of_ours():
    hidden = set(hidden_names())
    assert {("facets", "{name}"), ("collections", "{owner}")} <= hidden
    free = {
        word
        for word, part in hidden
        if (
            word.removesuffix(".git") not in RESERVED_OWNERS
            if part == "{owner}"
            else word in candidate_names(f"ann/tools/{word}")
        )
    }
    assert free == set()
