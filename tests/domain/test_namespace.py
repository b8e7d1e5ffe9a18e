"""Who may read: the one rule, by hand-written cases and as properties over every directory."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vskill_core.errors import InvalidInput
from vskill_core.identity import normalise, upload_identity
from vskill_platform.domain.people.namespace import (
    EVERYTHING,
    INTERNAL,
    MOST_MEMBERS,
    PUBLIC,
    Access,
    Directory,
    Member,
    Namespace,
    NamespaceRole,
    Reader,
    RegistryMode,
    Team,
    Visibility,
    audience_for,
    audiences,
    check_namespace_name,
    internal_form,
    maintainers_in,
    namespace_audiences,
    namespace_in,
    namespace_of,
    owners_in,
    public_form,
    role_of,
    upload_namespace,
    with_member,
    with_namespace,
    without_member,
)

ANONYMOUS = Reader()
MIA = Reader("mia")
STRANGER = Reader("zoe")


def member(principal: str, role: NamespaceRole = NamespaceRole.READER, repo: str = "") -> Member:
    return Member(principal, role, 1, "added", repo=repo)


def directory(*namespaces: Namespace, teams: tuple[Team, ...] = (), mode: RegistryMode = RegistryMode.PUBLIC):
    return Directory(Access(mode), {one.name: one for one in namespaces}, {team.name: team for team in teams})


def acme(visibility: Visibility | None, *members: Member) -> Namespace:
    return Namespace("acme", visibility, members=members)


def reads(reader: Reader, known: Directory) -> frozenset[str]:
    """The audiences of whoever does not read everything."""
    found = audiences(reader, known)
    assert isinstance(found, frozenset)
    return found


#: Whoever did not sign in; an account that belongs nowhere, where a namespace is managed; a member.
OUTSIDE, SIGNED_IN = {PUBLIC}, {PUBLIC, INTERNAL}
WITHIN = {*SIGNED_IN, "ns:acme", "ns:acme:internal", "ns:acme:team"}


@pytest.mark.parametrize(
    ("visibility", "anonymous", "signed_in"),
    [
        (None, OUTSIDE, OUTSIDE),
        (Visibility.PUBLIC, {PUBLIC, "ns:acme"}, {*SIGNED_IN, "ns:acme", "ns:acme:internal"}),
        (Visibility.INTERNAL, OUTSIDE, {*SIGNED_IN, "ns:acme", "ns:acme:internal"}),
        (Visibility.TEAM, OUTSIDE, SIGNED_IN),
    ],
)
def test_visibility_says_who_reads_a_namespace(visibility, anonymous, signed_in):
    known = directory(acme(visibility, member("user:mia")))
    assert reads(ANONYMOUS, known) == anonymous
    assert reads(STRANGER, known) == signed_in
    assert reads(MIA, known) == (WITHIN if visibility else OUTSIDE)


def test_a_team_reads_what_its_namespaces_hold():
    known = directory(acme(Visibility.TEAM, member("team:core")), teams=(Team("core", ("mia",)),))
    assert reads(MIA, known) == WITHIN
    assert reads(STRANGER, known) == SIGNED_IN


def test_a_team_that_is_gone_gives_nothing():
    assert reads(MIA, directory(acme(Visibility.TEAM, member("team:core")))) == SIGNED_IN


def test_an_account_called_like_a_team_is_no_member_of_it():
    known = directory(acme(Visibility.TEAM, member("team:mia")), teams=(Team("mia", ("zoe",)),))
    assert reads(MIA, known) == SIGNED_IN


def test_maintaining_one_repository_gives_no_right_to_read_the_others():
    repo = member("user:mia", NamespaceRole.MAINTAINER, repo="github.com/acme/tools")
    assert reads(MIA, directory(acme(Visibility.TEAM, repo))) == SIGNED_IN


def test_an_internal_registry_shows_nothing_to_whoever_did_not_sign_in():
    known = directory(acme(Visibility.PUBLIC), mode=RegistryMode.INTERNAL)
    assert reads(ANONYMOUS, known) == frozenset()
    assert reads(STRANGER, known) == {*SIGNED_IN, "ns:acme", "ns:acme:internal"}


def test_an_unmanaged_namespace_hides_none_that_follows_it():
    known = directory(Namespace("aaa"), acme(Visibility.PUBLIC))
    assert reads(ANONYMOUS, known) == {PUBLIC, "ns:acme"}


def test_a_directory_with_a_namespace_keeps_the_others_and_everything_else():
    known = directory(acme(Visibility.TEAM), teams=(Team("core"),), mode=RegistryMode.INTERNAL)
    other, wider = Namespace("other", Visibility.PUBLIC), acme(Visibility.PUBLIC)
    assert with_namespace(known, other).namespaces == {"acme": acme(Visibility.TEAM), "other": other}
    changed = with_namespace(known, wider)
    assert changed == Directory(Access(RegistryMode.INTERNAL), {"acme": wider}, {"core": Team("core")})


def test_reviewers_and_admins_read_everything():
    assert audiences(Reader("rob", reads_all=True), directory(acme(Visibility.TEAM))) is EVERYTHING


@pytest.mark.parametrize("reads_all", [False, True])
def test_a_bound_token_reads_its_namespace_and_what_is_public(reads_all):
    other = Namespace("other", Visibility.TEAM, members=(member("user:mia"),))
    known = directory(acme(Visibility.TEAM, member("user:mia")), other)
    assert reads(Reader("mia", reads_all, "acme"), known) == WITHIN - {INTERNAL}


def test_a_bound_token_is_let_into_an_internal_registry():
    outer = Namespace("outer", Visibility.PUBLIC)
    known = directory(acme(Visibility.TEAM, member("user:mia")), outer, mode=RegistryMode.INTERNAL)
    assert reads(Reader("mia", namespace="acme"), known) == {*WITHIN, "ns:outer"} - {INTERNAL}


def test_a_bound_token_gives_no_more_than_its_account_has():
    known = directory(acme(Visibility.TEAM, member("user:mia")))
    assert reads(Reader("zoe", namespace="acme"), known) == OUTSIDE


def test_an_account_owns_the_namespace_of_its_uploads():
    known = directory(Namespace("upload~mia", Visibility.TEAM))
    assert reads(MIA, known) >= namespace_audiences("upload~mia")
    assert reads(STRANGER, known) == SIGNED_IN


def test_documents_have_two_forms_and_nobodys_memberships_show():
    known = directory(
        acme(Visibility.TEAM, member("user:mia")),
        Namespace("inner", Visibility.INTERNAL),
        Namespace("outer", Visibility.PUBLIC),
    )
    assert public_form(known) == {PUBLIC, "ns:outer"}
    assert internal_form(known) == {
        *SIGNED_IN,
        "ns:outer",
        "ns:outer:internal",
        "ns:inner",
        "ns:inner:internal",
    }


@pytest.mark.parametrize(
    ("visibility", "narrowed", "expected"),
    [
        (None, None, PUBLIC),
        (None, Visibility.TEAM, PUBLIC),
        (Visibility.PUBLIC, None, "ns:acme"),
        (Visibility.PUBLIC, Visibility.PUBLIC, "ns:acme"),
        (Visibility.PUBLIC, Visibility.INTERNAL, "ns:acme:internal"),
        (Visibility.TEAM, Visibility.TEAM, "ns:acme:team"),
    ],
)
def test_the_audience_of_a_record_says_whose_it_is(visibility, narrowed, expected):
    assert audience_for(acme(visibility), "acme", narrowed) == expected
    assert audience_for(None, "acme", narrowed) == PUBLIC


def test_a_place_has_exactly_one_namespace():
    assert namespace_of(normalise("https://github.com/Acme/Tools")) == "acme"
    assert namespace_of(normalise("https://git.example.org/acme/sub/tools")) == "git.example.org~acme~sub"
    assert namespace_of(upload_identity("mia", "pdf")) == upload_namespace("Mia") == "upload~mia"
    assert namespace_in("acme/tools/pdf") == "acme"


def test_maintainers_are_found_by_what_gives_them_their_role():
    """Directly, by a team, for one repository, and for what they upload; readers and authors are none."""
    repo, role = "github.com/acme/tools", NamespaceRole
    known = directory(
        acme(
            None,
            member("user:olga", role.OWNER),
            member("user:mike", role.MAINTAINER, repo),
            member("user:else", role.MAINTAINER, "github.com/acme/other"),
            member("team:core", role.MAINTAINER),
            member("user:anna", role.AUTHOR),
        ),
        teams=(Team("core", ("tim", "tom")), Team("other", ("eve",))),
    )
    assert maintainers_in(known, "acme", repo) == {"olga", "mike", "tim", "tom"}
    assert maintainers_in(known, "upload~mia", "upload/mia") == {"mia"}
    assert maintainers_in(known, "unknown", repo) == set()


def test_the_highest_role_counts():
    repo = "github.com/acme/tools"
    space = acme(
        Visibility.TEAM,
        member("user:mia", NamespaceRole.READER),
        member("team:core", NamespaceRole.AUTHOR),
        member("user:mia", NamespaceRole.MAINTAINER, repo=repo),
    )
    mine = frozenset({"user:mia", "team:core"})
    assert role_of(space, "mia", mine) is NamespaceRole.AUTHOR
    assert role_of(space, "mia", mine, repo) is NamespaceRole.MAINTAINER
    assert role_of(space, "zoe", frozenset({"user:zoe"}), repo) is None


def test_a_member_is_replaced_and_others_stay():
    repo = "github.com/acme/tools"
    space = acme(Visibility.TEAM, member("user:mia"), member("user:mia", repo=repo), member("user:zoe"))
    changed = with_member(space, member("user:mia", NamespaceRole.OWNER))
    assert [(one.principal, one.role, one.repo) for one in changed.members] == [
        ("user:mia", NamespaceRole.READER, repo),
        ("user:zoe", NamespaceRole.READER, ""),
        ("user:mia", NamespaceRole.OWNER, ""),
    ]
    assert [one.principal for one in owners_in(changed.members)] == ["user:mia"]
    assert [one.principal for one in without_member(changed, "user:mia", repo).members] == [
        "user:zoe",
        "user:mia",
    ]


def test_a_member_of_one_repository_is_replaced_there_alone():
    repo = "github.com/acme/tools"
    space = acme(Visibility.TEAM, member("user:mia"), member("user:mia", repo=repo))
    changed = with_member(space, member("user:mia", NamespaceRole.MAINTAINER, repo))
    assert [(one.role, one.repo) for one in changed.members] == [
        (NamespaceRole.READER, ""),
        (NamespaceRole.MAINTAINER, repo),
    ]


def test_members_have_a_limit():
    full = acme(Visibility.TEAM, *(member(f"user:m{number}") for number in range(MOST_MEMBERS)))
    with pytest.raises(InvalidInput, match="500 members"):
        with_member(full, member("user:one-more"))
    assert len(with_member(full, member("user:m7", NamespaceRole.OWNER)).members) == MOST_MEMBERS


# Over every directory.

NAMES = ("acme", "beta", "upload~mia")
PEOPLE = ("mia", "zoe")
principals = st.sampled_from([*(f"user:{name}" for name in PEOPLE), "team:core", "team:gone"])
members = st.builds(
    member, principals, st.sampled_from(NamespaceRole), st.sampled_from(["", "github.com/acme/tools"])
)
spaces = st.builds(
    lambda name, visibility, found: Namespace(name, visibility, members=tuple(found)),
    st.sampled_from(NAMES),
    st.sampled_from([None, *Visibility]),
    st.lists(members, max_size=4),
)
directories = st.builds(
    lambda found, team, mode: directory(*found, teams=(Team("core", tuple(team)),), mode=mode),
    st.lists(spaces, max_size=4),
    st.lists(st.sampled_from(PEOPLE), max_size=2),
    st.sampled_from(RegistryMode),
)


@given(directories, st.sampled_from(PEOPLE))
def test_signing_in_never_takes_anything_away(known, account):
    anonymous, own = reads(ANONYMOUS, known), reads(Reader(account), known)
    assert anonymous <= own
    assert public_form(known) <= internal_form(known) <= own
    for name in NAMES:
        assert reads(Reader(account, namespace=name), known) <= own


@given(directories, st.sampled_from(PEOPLE), st.sampled_from(NAMES))
def test_a_team_namespace_is_read_by_its_members_alone(known, account, name):
    space = known.namespaces.get(name)
    if space is None or space.visibility is not Visibility.TEAM:
        return
    may = bool(namespace_audiences(name) & reads(Reader(account), known))
    assert may == (role_of(space, account, known.principals(account)) is not None)
    assert not namespace_audiences(name) & reads(ANONYMOUS, known)
    assert not namespace_audiences(name) & internal_form(known)


@given(directories, st.sampled_from([ANONYMOUS, MIA, STRANGER]), st.sampled_from(NAMES))
def test_narrowing_never_gives_anybody_more(known, reader, name):
    space = known.namespaces.get(name)
    if space is None or not space.managed:
        return
    before = reads(reader, known)
    for narrower in Visibility:
        if space.visibility is None or narrower.width < space.visibility.width:
            continue
        changed = msgspec.structs.replace(space, visibility=narrower)
        after = reads(reader, msgspec.structs.replace(known, namespaces={**known.namespaces, name: changed}))
        assert after <= before
    wide, inner, team = (audience_for(space, name, one) for one in Visibility)
    assert (team in before) <= (inner in before) <= (wide in before)


@pytest.mark.parametrize("name", ["acme:team", "acme:internal", "a/b", "a b", ""])
def test_a_name_that_no_skill_can_have_is_no_namespace(name):
    with pytest.raises(InvalidInput, match="cannot be a namespace's name"):
        check_namespace_name(name)


def test_a_namespace_with_a_colon_opens_no_audience_of_another():
    """Nobody can make such a record; should there be one, it opens nothing."""
    known = {
        "acme": Namespace("acme", Visibility.TEAM),
        "acme:team": Namespace("acme:team", Visibility.PUBLIC),
    }
    assert audiences(Reader(None), Directory(namespaces=known)) == frozenset({PUBLIC})
