"""Short names and who holds them: the record of each name, and the pure rules of claiming, keeping and reading one.

A name is held apart by *form*: `public` for skills that everybody may read, `internal` for those that every account may
read, `ns:OWNER` for those of a namespace's members. Readers of a form read the names of the wider ones too, and the
narrowest holder wins for them. A claim avoids what is held in its own form and in wider ones, so a narrow holder is
always older than a wide one of the same name, and a newcomer never changes what a name means to anybody. A newcomer
whose name means another skill to readers of a narrower form gets a second name there; it learns nothing of it.

Names are never given back: what is withdrawn or hidden keeps its own. Only an admin releases one.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from vskill_core.naming import NAME_LENGTH, hyphenate, is_plain_name
from vskill_platform.domain.canonical_names import RESERVED_OWNERS
from vskill_platform.domain.people.namespace import (
    INTERNAL,
    PUBLIC,
    Audiences,
    Everything,
    Visibility,
    namespace_in,
)
from vskill_platform.domain.skills.upstream import upstream_in

#: Hexadecimal digits of the canonical name's hash, from the first try on.
_HASHES = (8, 16, 48)
#: Parts of addresses that stand where a short name can stand.
_ROUTE_WORDS = RESERVED_OWNERS | {"facets"}


class NameHolder(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which skill a name means to readers of one form."""

    canonical: str
    since: int
    #: False: the name leads to the skill, which lists show under another one
    listed: bool = True


class HeldName(msgspec.Struct, frozen=True):
    """The record at `name:{flat}`."""

    #: by form
    holders: dict[str, NameHolder] = {}
    #: an admin took it from its holder: until somebody claims it, it leads nowhere
    released: bool = False


class ClaimedNames(msgspec.Struct, frozen=True):
    """What claims change: the names of skills, and records of names."""

    #: each skill's `listed_as`, by its canonical name
    listed_as: dict[str, dict[str, str]]
    #: by flat name
    held: dict[str, HeldName]


# Forms.


def form_for(canonical: str, visibility: Visibility | None, narrowed: Visibility | None) -> str:
    """The form of a skill by the visibility of its namespace (None: unmanaged) and its own."""
    width = max((visibility or Visibility.PUBLIC).width, (narrowed or Visibility.PUBLIC).width)
    if width == Visibility.PUBLIC.width:
        return PUBLIC
    return INTERNAL if width == Visibility.INTERNAL.width else f"ns:{namespace_in(canonical)}"


def forms_from(form: str) -> tuple[str, ...]:
    """The form and the wider ones, narrowest first: what its readers read."""
    return (PUBLIC,) if form == PUBLIC else tuple(dict.fromkeys((form, INTERNAL, PUBLIC)))


def _narrowness(form: str) -> int:
    """More is narrower."""
    return len(forms_from(form))


def _is_read(form: str, audiences: Audiences) -> bool:
    if isinstance(audiences, Everything) or form == PUBLIC:
        return True
    if form == INTERNAL:
        return INTERNAL in audiences or any(one.endswith((":internal", ":team")) for one in audiences)
    return f"{form}:team" in audiences


def reads_several(audiences: Audiences) -> bool:
    """Whether a reader reads the names of several namespaces, of which two may hold the same one."""
    return isinstance(audiences, Everything) or sum(one.endswith(":team") for one in audiences) > 1


# Reading.


def holder_for(held: HeldName, audiences: Audiences) -> NameHolder | None:
    """Whom a name means to a reader: the holder in the narrowest form that the reader reads, of several the oldest."""
    read = [form for form in held.holders if _is_read(form, audiences)]
    if not read:
        return None
    return held.holders[min(read, key=lambda form: (-_narrowness(form), held.holders[form].since, form))]


def listed_name(listed_as: Mapping[str, str], audiences: Audiences) -> str | None:
    """The name under which a reader finds the skill in lists; None while it has none."""
    form = listed_form(listed_as, audiences)
    return None if form is None else listed_as[form]


def listed_form(listed_as: Mapping[str, str], audiences: Audiences) -> str | None:
    """The form in which the skill has that name."""
    read = [form for form in listed_as if _is_read(form, audiences)]
    return min(read, key=lambda form: (-_narrowness(form), form), default=None)


# Candidates.


def candidate_names(canonical: str) -> tuple[str, ...]:
    """The names that a skill claims, best first: its slug, with its owner, with its repository, with a hash. One
    from an upstream never claims the bare slug: a list of thousands would take names that are never given back."""
    owner, repo, slug = map(hyphenate, canonical.split("/"))
    origin = upstream_in(namespace_in(canonical))
    if origin is None:
        choices: tuple[tuple[str, ...], ...] = ((), (owner,), (owner, repo))
    else:
        choices = ((origin,), (repo, origin))
    joined = ("-".join((slug, *more)) for more in choices)
    plain = (name for name in joined if slug and is_plain_name(name) and name not in _ROUTE_WORDS)
    return tuple(dict.fromkeys((*plain, *(hashed_name(canonical, digits) for digits in _HASHES))))


def hashed_name(canonical: str, digits: int = _HASHES[0]) -> str:
    """The slug and a hash of the canonical name: 1 to 64 of `a-z0-9-`."""
    plain = hyphenate(canonical.rpartition("/")[2])[: NAME_LENGTH - digits - 1].strip("-")
    return f"{plain or 'skill'}-{hashlib.sha256(canonical.encode()).hexdigest()[:digits]}"


def names_of(canonical: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*candidate_names(canonical), canonical.rpartition("/")[2].lower())))


# Claiming.


def claim_names(
    canonical: str, form: str, listed_as: Mapping[str, str], held: Mapping[str, HeldName], at: int
) -> ClaimedNames:
    """The names of a skill in this form, claimed where it has none there or in a wider one. `held` has the records of
    all its candidates that there are."""
    claim = _Claim(canonical, held, at)
    listed = dict(listed_as)
    if not any(one in listed for one in forms_from(form)):
        listed[form] = claim.take(form)
    slug = canonical.rpartition("/")[2].lower()
    is_own = upstream_in(namespace_in(canonical)) is None
    if is_own and slug not in listed.values() and not is_plain_name(slug) and claim.is_free(slug, form):
        # As it is written it is no name for every client, and still an address.
        claim.hold(slug, form, listed=False)
    for narrower in (INTERNAL, *sorted(claim.namespaces(listed.values()))):
        shown = next((listed[one] for one in forms_from(narrower) if one in listed), None)
        if shown is not None and claim.meaning(shown, narrower) != canonical:
            listed[narrower] = claim.take(narrower)
    return ClaimedNames({canonical: listed}, claim.changed)


def release(
    canonical: str, flat: str, form: str, listed_as: Mapping[str, str], held: Mapping[str, HeldName], at: int
) -> ClaimedNames:
    """The names after a skill has lost one, in every form, and has claimed others in its place."""
    left = {one: holder for one, holder in held[flat].holders.items() if holder.canonical != canonical}
    without = HeldName(left, released=True)
    listed = {one: name for one, name in listed_as.items() if name != flat}
    # As if everybody held it: the skill does not get it again at once.
    nobody = NameHolder("", at)
    closed = HeldName(dict.fromkeys((*forms_from(form), *held[flat].holders), nobody))
    claimed = claim_names(canonical, form, listed, {**held, flat: closed}, at)
    return ClaimedNames(claimed.listed_as, {**claimed.held, flat: without})


class _Claim:
    """The names as one claim leaves them."""

    def __init__(self, canonical: str, held: Mapping[str, HeldName], at: int) -> None:
        self._canonical = canonical
        self._held = dict(held)
        self._at = at
        self.changed: dict[str, HeldName] = {}

    def take(self, form: str) -> str:
        """The first candidate that is free in this form."""
        # A hash of 48 digits is always free.
        name = next(one for one in candidate_names(self._canonical) if self.is_free(one, form))
        self.hold(name, form)
        return name

    def is_free(self, name: str, form: str) -> bool:
        holders = self._holders(name)
        # A name that only leads to the skill is not upgraded.
        return all(
            holders[one].canonical == self._canonical and holders[one].listed
            for one in forms_from(form)
            if one in holders
        )

    def hold(self, name: str, form: str, *, listed: bool = True) -> None:
        holders = self._holders(name)
        if form in holders:
            return
        new = NameHolder(self._canonical, self._at, listed)
        known = self._held.get(name, HeldName())
        self._held[name] = self.changed[name] = msgspec.structs.replace(known, holders={**holders, form: new})

    def meaning(self, name: str, form: str) -> str | None:
        """Which skill a name means to readers of this form."""
        holders = self._holders(name)
        return next((holders[one].canonical for one in forms_from(form) if one in holders), None)

    def namespaces(self, names: Iterable[str]) -> Iterator[str]:
        found = {form for name in names for form in self._holders(name) if form.startswith("ns:")}
        yield from found

    def _holders(self, name: str) -> dict[str, NameHolder]:
        return self._held.get(name, HeldName()).holders
