"""Short names: who gets which, and what they mean to whom."""

import pytest

from vskill_core.naming import hyphenate, is_plain_name, name_note, plain_name
from vskill_platform.domain.people.namespace import EVERYTHING, PUBLIC_ONLY, Audiences, Visibility
from vskill_platform.domain.skills.names import (
    HeldName,
    candidate_names,
    claim_names,
    form_for,
    hashed_name,
    holder_for,
    listed_form,
    listed_name,
    names_of,
    reads_several,
    release,
)

ACCOUNT = frozenset({"public", "internal"})
MEMBER = ACCOUNT | {"ns:acme", "ns:acme:internal", "ns:acme:team"}
MEMBER_OF_BOTH = MEMBER | {"ns:zeta", "ns:zeta:internal", "ns:zeta:team"}


def meaning(held: dict[str, HeldName], flat: str, audiences: Audiences = PUBLIC_ONLY) -> str | None:
    found = holder_for(held.get(flat, HeldName()), audiences)
    return None if found is None else found.canonical


class Names:
    """The records of names, and what each skill is listed as."""

    def __init__(self) -> None:
        self.held: dict[str, HeldName] = {}
        self.listed: dict[str, dict[str, str]] = {}
        self.at = 0

    def claim(self, canonical: str, form: str = "public") -> dict[str, str]:
        self.at += 1
        claimed = claim_names(canonical, form, self.listed.get(canonical, {}), self.held, self.at)
        self.held |= claimed.held
        self.listed |= claimed.listed_as
        return self.listed[canonical]

    def meaning(self, flat: str, audiences: Audiences = PUBLIC_ONLY) -> str | None:
        return meaning(self.held, flat, audiences)


def test_a_slug_claims_the_first_name_that_is_free():
    names = Names()
    assert names.claim("acme/tools/lint") == {"public": "lint"}
    assert names.claim("beta/tools/lint") == {"public": "lint-beta"}
    assert names.claim("beta/extra/lint") == {"public": "lint-beta-extra"}
    assert names.claim("acme/tools/lint") == {"public": "lint"}
    assert names.claim("gamma/x/lint-beta") == {"public": "lint-beta-gamma"}
    assert names.meaning("lint") == "acme/tools/lint"


@pytest.mark.parametrize(
    ("canonical", "first"),
    [
        ("acme/tools/search", "search-acme"),
        ("acme/tools/my_skill", "my-skill"),
        ("acme/tools/日本", hashed_name("acme/tools/日本")),
        ("acme/tools/" + "a" * 65, hashed_name("acme/tools/" + "a" * 65)),
        ("upload~mia/skills/lint", "lint"),
    ],
)
def test_every_candidate_is_a_plain_name_and_no_route_word(canonical, first):
    assert candidate_names(canonical)[0] == first
    assert all(is_plain_name(one) for one in candidate_names(canonical))


def test_a_slug_that_is_no_plain_name_leads_to_its_first_skill():
    names = Names()
    names.claim("acme/tools/my_skill")
    names.claim("beta/tools/my_skill")
    assert names.meaning("my_skill") == "acme/tools/my_skill"
    # It is an address, and never what lists show.
    assert not names.held["my_skill"].holders["public"].listed


def test_no_skill_holds_a_route_word():
    names = Names()
    names.claim("acme/tools/search")
    assert list(names.held) == ["search-acme"]


def test_a_skill_whose_names_are_all_taken_gets_one_with_a_longer_hash():
    *_, shortest, longer, longest = candidate_names("acme/tools/lint")
    assert [len(name) for name in (shortest, longer, longest)] == [len("lint-") + n for n in (8, 16, 48)]
    assert longest.startswith(longer) and longer.startswith(shortest)


def test_every_name_that_a_skill_can_hold_is_a_candidate_or_its_slug_without_case():
    assert names_of("acme/tools/My_Skill") == (*candidate_names("acme/tools/My_Skill"), "my_skill")
    assert names_of("acme/tools/lint") == candidate_names("acme/tools/lint")


def test_for_a_member_the_private_holder_wins_and_for_others_it_is_not_there():
    names = Names()
    assert names.claim("acme/tools/lint", "ns:acme") == {"ns:acme": "lint"}
    assert names.claim("beta/tools/lint") == {"public": "lint", "ns:acme": "lint-beta"}
    assert names.meaning("lint") == names.meaning("lint", ACCOUNT) == "beta/tools/lint"
    assert names.meaning("lint", MEMBER) == "acme/tools/lint"
    assert names.meaning("lint-beta", MEMBER) == "beta/tools/lint"
    assert names.meaning("lint-beta") is None
    listed = names.listed["beta/tools/lint"]
    assert (listed_name(listed, PUBLIC_ONLY), listed_name(listed, MEMBER)) == ("lint", "lint-beta")


def test_a_member_of_two_namespaces_that_hold_a_name_reads_the_older_holder():
    names = Names()
    names.claim("zeta/tools/lint", "ns:zeta")
    names.claim("acme/tools/lint", "ns:acme")
    assert names.meaning("lint", MEMBER_OF_BOTH) == "zeta/tools/lint"
    assert names.meaning("lint", MEMBER) == "acme/tools/lint"


def test_only_a_member_of_two_namespaces_or_a_reader_of_everything_reads_several():
    assert reads_several(MEMBER_OF_BOTH) and reads_several(EVERYTHING)
    assert not reads_several(MEMBER) and not reads_several(ACCOUNT)


def test_lists_show_the_name_of_the_fewest_readers():
    listed = {"public": "lint", "internal": "lint-acme", "ns:acme": "lint-acme-tools"}
    shown = [listed_name(listed, readers) for readers in (PUBLIC_ONLY, ACCOUNT, MEMBER)]
    assert shown == ["lint", "lint-acme", "lint-acme-tools"]
    assert listed_form({"ns:acme": "lint"}, ACCOUNT) is None


def test_a_private_skill_does_not_take_a_public_name_from_its_readers():
    names = Names()
    names.claim("beta/tools/lint")
    assert names.claim("acme/tools/lint", "ns:acme") == {"ns:acme": "lint-acme"}
    assert names.meaning("lint", MEMBER) == "beta/tools/lint"


def test_going_public_claims_anew_and_keeps_the_members_name():
    names = Names()
    names.claim("acme/tools/lint", "ns:acme")
    names.claim("beta/tools/lint")
    assert names.claim("acme/tools/lint") == {"ns:acme": "lint", "public": "lint-acme"}
    assert names.meaning("lint", MEMBER) == "acme/tools/lint"
    assert names.meaning("lint") == "beta/tools/lint"


def test_an_internal_newcomer_is_named_apart_for_members_who_know_another():
    names = Names()
    names.claim("acme/tools/lint", "ns:acme")
    assert names.claim("beta/tools/lint", "internal") == {"internal": "lint", "ns:acme": "lint-beta"}
    assert names.claim("gamma/tools/lint") == {"public": "lint", "internal": "lint-gamma"}
    assert names.meaning("lint-gamma", MEMBER) == "gamma/tools/lint"
    assert names.meaning("lint", ACCOUNT) == "beta/tools/lint"
    assert names.meaning("lint", EVERYTHING) == "acme/tools/lint"


def test_a_released_name_leads_nowhere_until_somebody_claims_it():
    names = Names()
    names.claim("acme/tools/lint")
    released = release("acme/tools/lint", "lint", "public", names.listed["acme/tools/lint"], names.held, 9)
    assert released.listed_as == {"acme/tools/lint": {"public": "lint-acme"}}
    names.held |= released.held
    assert names.meaning("lint") is None and names.held["lint"].released
    assert names.claim("beta/tools/lint") == {"public": "lint"}


def test_releasing_a_name_leaves_it_to_its_other_holders():
    names = Names()
    names.claim("acme/tools/lint", "ns:acme")
    names.claim("beta/tools/lint")
    released = release("beta/tools/lint", "lint", "public", names.listed["beta/tools/lint"], names.held, 9)
    assert meaning(released.held, "lint") is None
    assert meaning(released.held, "lint", MEMBER) == "acme/tools/lint"


def test_a_claim_goes_on_where_the_record_of_a_name_is_lost():
    claimed = claim_names("acme/tools/lint", "public", {"public": "lint"}, {}, 9)
    assert claimed.listed_as["acme/tools/lint"]["public"] == "lint"


@pytest.mark.parametrize(
    ("visibility", "narrowed", "form"),
    [
        (None, None, "public"),
        (Visibility.PUBLIC, None, "public"),
        (Visibility.PUBLIC, Visibility.INTERNAL, "internal"),
        (Visibility.INTERNAL, None, "internal"),
        (Visibility.INTERNAL, Visibility.TEAM, "ns:acme"),
        (Visibility.TEAM, Visibility.INTERNAL, "ns:acme"),
    ],
)
def test_the_form_is_that_of_the_fewest_readers(visibility, narrowed, form):
    assert form_for("acme/tools/lint", visibility, narrowed) == form


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("PDF Tools", "pdf-tools"),
        ("x" * 63 + " y", "x" * 63),
        ("x" * 70, "x" * 64),
        ("日本", "skill-cf2abf0c"),
    ],
)
def test_every_text_has_a_nearest_plain_name(text, name):
    assert plain_name(text) == name and is_plain_name(name)


@pytest.mark.parametrize(
    ("slug", "declared", "differs"),
    [("p0", "night-0", True), ("lint", "lint", False), ("lint~a1b2c3", "Lint", False), ("p0", None, False)],
)
def test_a_note_says_under_which_of_two_names_a_skill_is_published(slug, declared, differs):
    note = name_note(slug, declared)
    assert (note is not None) is differs
    assert note is None or (slug in note and declared in note)


@pytest.mark.parametrize(
    ("text", "plain"),
    [("Make  Slides!", "make-slides"), ("Über_Größe 2", "ber-gr-e-2"), ("--a--b--", "a-b"), ("日本", "")],
)
def test_letters_and_digits_stay_and_everything_else_is_one_hyphen(text, plain):
    assert hyphenate(text) == plain
