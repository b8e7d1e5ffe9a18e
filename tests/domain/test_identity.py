"""Identity: every spelling of one place is one place, and no two places share one (D4, D13, A4b)."""

import uuid

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from vskill_core.errors import InvalidInput
from vskill_core.identity import (
    CASELESS_HOSTS,
    Identity,
    clean_path,
    has_control_characters,
    normalise,
    parse_place,
    submission_id,
    upload_identity,
)

SPELLINGS = [
    "https://github.com/Acme/Tools",
    "http://github.com/acme/tools",
    "https://github.com/acme/tools/",
    "https://github.com/acme/tools.git",
    "https://github.com/acme/tools.git/",
    "https://github.com/acme/tools.GIT.git",
    "HTTPS://GitHub.com/ACME/TOOLS",
    "https://www.github.com/acme/tools",
    "https://github.com:443/acme/tools",
    "http://github.com:80/acme/tools",
    "https://github.com./acme/tools",
    "https://user:secret@github.com/acme/tools",
    "user:secret@github.com/acme/tools",
    "https://github.com/acme/tools?tab=readme#usage",
    "https://github.com/acme/tools/tree/main",
    "https://github.com/acme/tools/tree",
    "https://github.com/acme/tools/blob/main/SKILL.md",
    "https://github.com//acme//tools",
    "https://github.com/%61cme/tools",
    "git@github.com:acme/tools.git",
    "github.com:acme/tools",
    "git@github.com:/acme/tools",
    "ssh://git@github.com/acme/tools.git",
    "ssh://git@github.com:2222/acme/tools.git",
    "git+https://github.com/acme/tools.git",
    "git://github.com/acme/tools",
    "github.com/acme/tools",
    "github.com:443/acme/tools",
    "www.github.com/acme/tools",
    "acme/tools",
    "  acme/tools \n",
]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_d13_every_spelling_of_a_repository_is_one_place(spelling: str) -> None:
    assert normalise(spelling).key == "github.com/acme/tools"
    assert submission_id(normalise(spelling)) == submission_id(normalise("acme/tools"))


def test_owner_and_repository_are_kept_as_written_for_display() -> None:
    identity = normalise("https://GitHub.com/Acme/My.Tools.git", "skills/PDF")
    assert identity == Identity("github.com", "Acme", "My.Tools", "skills/PDF")
    assert identity.url == "https://github.com/Acme/My.Tools"
    assert identity.key == "github.com/acme/my.tools/skills/PDF"
    assert identity.repo_key == "github.com/acme/my.tools"


@pytest.mark.parametrize("host", sorted(CASELESS_HOSTS))
def test_case_does_not_count_on_the_three_known_hosts(host: str) -> None:
    assert normalise(f"https://{host}/A/B").key == normalise(f"https://{host}/a/b").key


def test_case_counts_on_any_other_host_and_in_every_path() -> None:
    assert normalise("https://git.example.com/A/B").key != normalise("https://git.example.com/a/b").key
    assert normalise("a/b", "Skills").key != normalise("a/b", "skills").key


@pytest.mark.parametrize(
    ("url", "path", "expected"),
    [
        ("https://github.com/a/b/tree/main/skills/pdf", "", "skills/pdf"),
        ("https://github.com/a/b/tree/main/skills/pdf/", "", "skills/pdf"),
        ("https://github.com/a/b/blob/main/skills/pdf/SKILL.md", "", "skills/pdf"),
        ("https://github.com/a/b/tree/main/with%20space", "", "with space"),
        ("https://github.com/a/b/tree/main/100%2525", "", "100%25"),
        ("https://gitlab.com/a/b/-/tree/main/skills/pdf", "", "skills/pdf"),
        ("https://gitlab.com/a/b/-/blob/main/skills/pdf/SKILL.md", "", "skills/pdf"),
        ("https://gitlab.com/a/b/-", "", ""),
        ("https://bitbucket.org/a/b/src/main/skills/pdf", "", "skills/pdf"),
        ("https://bitbucket.org/a/b/src", "", ""),
        ("https://codeberg.org/a/b/src/branch/main/skills/pdf", "", "skills/pdf"),
        ("https://git.example.com/a/b/src/tag/v1/skills/pdf", "", "skills/pdf"),
        ("https://github.com/a/b/tree/main/x://y", "", "x:/y"),
        ("a/b", "/skills//./pdf/", "skills/pdf"),
        ("a/b", "skills/pdf/SKILL.md", "skills/pdf"),
        ("a/b", "SKILL.md", ""),
        ("a/b", "  skills/pdf ", "skills/pdf"),
        ("https://github.com/a/b/tree/main/skills", "skills/pdf", "skills/pdf"),
        ("https://github.com/a/b/tree/main/skills", "skills", "skills"),
    ],
)
def test_the_path_of_the_folder(url: str, path: str, expected: str) -> None:
    assert normalise(url, path).path == expected


def test_nested_groups_belong_to_the_owner_and_never_blur_the_key() -> None:
    nested = normalise("https://gitlab.com/Group/Sub/Repo")
    assert (nested.owner, nested.repo) == ("Group/Sub", "Repo")
    assert nested.key == "gitlab.com/group~sub/repo"
    assert nested.key != normalise("https://gitlab.com/group/sub", "repo").key
    assert normalise("git@gitlab.com:group/sub/repo.git").key == nested.key
    assert normalise("https://git.example.com/g/src/repo").owner == "g/src"
    assert normalise("https://git.example.com/g/s/src/repo").owner == "g/s/src"


def test_owner_and_repository_may_be_called_like_a_view_of_files() -> None:
    for names in ("tree/blob", "blob/src", "src/tree"):
        assert normalise(f"https://github.com/{names}/tree/main").key == f"github.com/{names}"


def test_a_user_that_begins_with_a_tilde_is_allowed() -> None:
    assert normalise("https://git.sr.ht/~ann/tools").key == "git.sr.ht/~ann/tools"
    assert normalise("https://git.sr.ht/~a/tools").owner == "~a"
    with pytest.raises(InvalidInput):
        normalise("https://git.sr.ht/~ä/tools")


@pytest.mark.parametrize(
    ("url", "host", "segment"),
    [
        ("https://git.example.com:8443/a/b", "git.example.com:8443", "git.example.com_8443"),
        ("git.example.com:08443/a/b", "git.example.com:8443", "git.example.com_8443"),
        ("git.example.com:008443/a/b", "git.example.com", "git.example.com"),
        ("localhost:3000/a/b", "localhost:3000", "localhost_3000"),
        ("git@intranet:a/b", "intranet", "intranet"),
        ("git@intranet/a/b", "intranet", "intranet"),
        ("git@github.com:123/b", "github.com", "github.com"),
        ("git@github.com:123/b/", "github.com", "github.com"),
        ("https://straẞe.example/a/b", "strasse.example", "strasse.example"),
        ("https://bücher.example/a/b", "xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("https://www.www.example.com/a/b", "example.com", "example.com"),
        ("https://www.com/a/b", "www.com", "www.com"),
        ("https://a-b.c.example/a/b", "a-b.c.example", "a-b.c.example"),
    ],
)
def test_hosts_and_ports(url: str, host: str, segment: str) -> None:
    identity = normalise(url)
    assert (identity.host, identity.host_segment) == (host, segment)
    assert ":" not in identity.repo_key


REFUSED = [
    ("", "", "repo_url"),
    ("tools", "", "repo_url"),
    ("https://", "", "repo_url"),
    ("https://github.com", "", "repo_url"),
    ("https://github.com/acme", "", "repo_url"),
    ("gitlab.com/acme", "", "repo_url"),
    ("a/b/c", "", "repo_url"),
    ("a/b/tree", "", "repo_url"),
    ("https://github.com/a/b/c", "", "repo_url"),
    ("https://github.com/a/b/issues", "", "repo_url"),
    ("https://gitlab.com/a/b/-/issues", "", "repo_url"),
    ("https://github.com/a/b/blob/main/README.md", "", "repo_url"),
    ("https://github.com/a/b/tree/main/../x", "", "repo_url"),
    ("https://github.com/a/b/tree/main/%2e%2e/x", "", "repo_url"),
    ("https://github.com/a/..", "", "repo_url"),
    ("https://github.com/a/.git", "", "repo_url"),
    ("https://github.com/a~x/b", "", "repo_url"),
    ("https://github.com/~/b", "", "repo_url"),
    ("https://github.com/a/~b", "", "repo_url"),
    ("https://git.example.com/a/~b/c", "", "repo_url"),
    ("https://git.example.com/a/b/tree.git", "", "repo_url"),
    ("https://git.example.com/a/https://b/c/d/e", "", "repo_url"),
    ("a/b/c/d", "", "repo_url"),
    ("https://github.com/a b/c", "", "repo_url"),
    ("https://github.com/a:b/c", "", "repo_url"),
    ("https://github.com/ä/c", "", "repo_url"),
    ("https://github.com/a/b%00", "", "repo_url"),
    ("https://github.com/a/b%ff", "", "repo_url"),
    ("https://github.com/a/b%5Cc", "", "repo_url"),
    ("https://github.com/a/\x00b", "", "repo_url"),
    ("https://github.com/a/" + "b" * 101, "", "repo_url"),
    ("https://github.com/a/b" + "/" * 3000, "", "repo_url"),
    ("https://git.example.com/" + "/".join("abcdefghijklmnopqrstu"), "", "repo_url"),
    ("https://" + "h" * 300 + ".com/a/b", "", "repo_url"),
    ("https://" + "h" * 64 + ".com/a/b", "", "repo_url"),
    ("https://" + ".".join(["ü" * 8] * 28) + "/a/b", "", "repo_url"),
    ("https://-x.com/a/b", "", "repo_url"),
    ("https://x-.com/a/b", "", "repo_url"),
    ("https://xy-.com/a/b", "", "repo_url"),
    ("https://a_b.com/a/b", "", "repo_url"),
    ("https://[::1]/a/b", "", "repo_url"),
    ("https://git.example.com:0/a/b", "", "repo_url"),
    ("https://git.example.com:008443/a/b", "", "repo_url"),
    ("https://git.example.com:65536/a/b", "", "repo_url"),
    ("https://git.example.com:x/a/b", "", "repo_url"),
    ("file:///etc/passwd", "", "repo_url"),
    ("https:\\\\github.com\\a\\b", "", "repo_url"),
    ("a/b", "..", "skill_path"),
    ("a/b", "x/../../y", "skill_path"),
    ("a/b", "x\\y", "skill_path"),
    ("a/b", "x\ny", "skill_path"),
    ("a/b", "x\u202ey", "skill_path"),
    ("a/b", "x\u2028y", "skill_path"),
    ("a/b", "x\ud800y", "skill_path"),
    ("a/b", "x /y", "skill_path"),
    ("a/b", "x" * 1025, "skill_path"),
    ("https://github.com/a/b/tree/main/skills", "other", "skill_path"),
    ("https://github.com/a/b/tree/main/skills", "skills2", "skill_path"),
]


@pytest.mark.parametrize(("url", "path", "field"), REFUSED)
def test_what_is_refused_names_the_field_and_the_fix(url: str, path: str, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        normalise(url, path)
    assert caught.value.field == field
    assert caught.value.fix and caught.value.message != InvalidInput().message


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("https://github.com/a/" + "b" * 100, ""),
        ("https://github.com/a/b" + "/" * (2048 - 22), ""),
        ("a/b", "x" * 1024),
        ("https://git.example.com/" + "/".join("abcdefghijklmnopqrst"), ""),
        ("https://git.example.com:1/a/b", ""),
        ("https://git.example.com:65535/a/b", ""),
        ("https://" + ".".join(["h" * 49] * 5) + ".com/a/b", ""),
    ],
)
def test_what_is_just_within_a_limit_is_accepted(url: str, path: str) -> None:
    assert normalise(url, path).repo


def test_a4b_an_upload_has_a_place_of_its_own_that_no_address_can_name() -> None:
    upload = upload_identity("Acme", "PDF")
    assert upload == Identity("upload", "acme", "skills", "pdf")
    assert (upload.key, upload.url, upload.is_upload) == (
        "upload/acme/skills/pdf",
        "upload://acme/pdf",
        True,
    )
    for url in ("https://upload/acme/skills", "https://UPLOAD./acme/skills", "git@upload:acme/skills"):
        with pytest.raises(InvalidInput):
            normalise(url, "pdf")


def test_a4b_the_same_owner_and_repository_on_another_host_is_another_place() -> None:
    keys = {normalise(f"https://{host}/a/b").key for host in ("github.com", "gitlab.com", "git.example.com")}
    assert len(keys) == 3


@pytest.mark.parametrize(
    ("namespace", "slug"),
    [("", "x"), ("a/b", "x"), ("a", ""), ("a", "x:y"), ("\u212a", "x"), ("~a", "x"), ("a", "~x")],
)
def test_an_upload_needs_plain_names(namespace: str, slug: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        upload_identity(namespace, slug)
    assert caught.value.field in ("namespace", "slug")


def test_d4_the_id_is_fixed_for_ever() -> None:
    """A changed namespace or key format would orphan every stored submission; this value must never change."""
    assert submission_id(normalise("acme/tools", "skills/pdf")) == "sub_e09b85cc-0d5f-555d-b0c2-cc1ceac32536"
    assert uuid.UUID(submission_id(normalise("a/b")).removeprefix("sub_")).version == 5


# Properties.

NAMES = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,12}", fullmatch=True)
HOSTS = st.sampled_from(
    ["github.com", "gitlab.com", "bitbucket.org", "git.example.com", "git.example.com:8443"]
)
FOLDERS = st.lists(
    st.text(
        st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"], exclude_characters="/\\"),
        min_size=1,
        max_size=8,
    ),
    max_size=3,
).map("/".join)
URLISH = st.text(st.sampled_from("abAB01:/@.-_~%#?\\ ü\x00٣"), max_size=40)


@st.composite
def places(draw: st.DrawFn) -> tuple[str, str]:
    prefix = draw(st.sampled_from(["https://", "http://", "ssh://git@", "", "https://www."]))
    host, owner, repo = draw(HOSTS), draw(NAMES), draw(NAMES)
    tail = draw(st.sampled_from(["", "/", ".git", "/tree/main", "/-/tree/main", "?x=1"]))
    return f"{prefix}{host}/{owner}/{repo}{tail}", draw(FOLDERS)


@given(st.one_of(places(), st.tuples(URLISH, FOLDERS), st.tuples(st.text(max_size=60), st.text(max_size=30))))
@settings(max_examples=examples(200), deadline=None)
def test_normalising_is_total_and_idempotent(place: tuple[str, str]) -> None:
    try:
        identity = normalise(*place)
    except InvalidInput:
        return
    assert normalise(identity.url, identity.path) == identity
    assert len(identity.repo_key.split("/")) == 3 and ":" not in identity.repo_key
    assert not has_control_characters(identity.key)
    assert submission_id(identity) == submission_id(normalise(identity.url, identity.path))


@given(st.lists(NAMES, min_size=2, max_size=4), NAMES, st.lists(NAMES, min_size=2, max_size=4), NAMES)
@settings(max_examples=examples(100), deadline=None)
def test_two_places_never_share_a_key(
    left: list[str], left_path: str, right: list[str], right_path: str
) -> None:
    one = Identity("gitlab.com", "/".join(left[:-1]), left[-1], left_path)
    two = Identity("gitlab.com", "/".join(right[:-1]), right[-1], right_path)
    parts = [(i.owner.lower(), i.repo.lower(), i.path) for i in (one, two)]
    assert (one.key == two.key) == (parts[0] == parts[1])


@given(st.text(max_size=40))
def test_cleaning_a_path_is_idempotent(text: str) -> None:
    try:
        cleaned = clean_path(text)
    except InvalidInput:
        return
    assert clean_path(cleaned) == cleaned


def test_a_place_is_read_as_we_show_it():
    upload = upload_identity("team", "demo")
    assert parse_place(upload.url) == upload
    assert parse_place("https://github.com/o/r").key == "github.com/o/r"
    with pytest.raises(InvalidInput) as raised:
        parse_place("upload://team")
    assert raised.value.field == "slug"
