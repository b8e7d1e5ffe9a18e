"""Published skills: names, version numbers, publishing and who may undo what."""

import itertools

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from vskill_core.content import SkillFile, digest_of, manifest_of
from vskill_core.errors import (
    IdentityMismatch,
    InvalidInput,
    LowerVersion,
    NotFound,
    NotPermitted,
    PlatformError,
    RecordMalformed,
    VersionStatusError,
)
from vskill_core.findings import Severity, Verdict
from vskill_core.identity import Identity, normalise, upload_identity
from vskill_core.naming import slug_of, slugify
from vskill_platform.domain import keys
from vskill_platform.domain.blocklist import BLOCK_REASON
from vskill_platform.domain.canonical_names import RESERVED_OWNERS, alias_names, canonical_name, clash_slug
from vskill_platform.domain.client_hashes import content_hash, tree_hash
from vskill_platform.domain.downloads import Artifact
from vskill_platform.domain.skills.listing import About, listing
from vskill_platform.domain.skills.numbering import next_version, parse_semver
from vskill_platform.domain.skills.skill import (
    Certification,
    OpenReview,
    PublishedSkill,
    SkillVersion,
    StatusRole,
    VersionRef,
    VersionStatus,
    certification_for,
    is_under_review,
    newest_under_review,
)
from vskill_platform.domain.skills.skill_changes import (
    Publication,
    StatusChange,
    delete,
    keep_live,
    publish_version,
    put_under_review,
    recertify,
    restore,
    take_down,
    unblock,
    unyank,
    with_installs,
    with_lacks,
    with_trust,
    yank,
)
from vskill_platform.domain.skills.trust import Provenance, TrustFacts

PLACE = normalise("Acme/Tools", "skills/PDF")


# Names.


@pytest.mark.parametrize(
    ("url", "path", "canonical"),
    [
        ("Acme/Tools", "skills/PDF", "acme/tools/pdf"),
        ("Acme/Tools.git", "", "acme/tools/tools"),
        ("https://gitlab.com/Acme/Tools", "", "gitlab.com~acme/tools/tools"),
        ("https://gitlab.com/Group/Sub/Tools", "x", "gitlab.com~group~sub/tools/x"),
        ("https://git.example.com:8443/Acme/Tools", "X", "git.example.com_8443~Acme/Tools/x"),
        ("https://git.sr.ht/~ann/tools", "", "git.sr.ht~~ann/tools/tools"),
        ("API/tools", "", "github.com~api/tools/tools"),
    ],
)
def test_canonical_names_have_three_parts_and_the_host_off_github(
    url: str, path: str, canonical: str
) -> None:
    assert canonical_name(normalise(url, path)) == canonical


def test_a_repository_that_no_check_has_seen_still_has_a_name() -> None:
    assert canonical_name(Identity("github.com", "ann", "a/b/c"), "x") == "ann/a/b/c/x"


def test_a4b_an_upload_and_another_host_never_get_the_name_of_a_github_skill() -> None:
    places = [
        normalise("acme/skills", "pdf"),
        normalise("https://gitlab.com/acme/skills", "pdf"),
        normalise("https://git.example.com/acme/skills", "pdf"),
        upload_identity("acme", "pdf"),
    ]
    names = {canonical_name(place) for place in places}
    assert len(names) == 4 and "upload~acme/skills/pdf" in names


@pytest.mark.parametrize("owner", sorted(RESERVED_OWNERS))
def test_no_owner_takes_one_of_our_routes(owner: str) -> None:
    assert owner == owner.lower()
    name = canonical_name(Identity("github.com", owner.upper(), "repo"))
    assert name.split("/")[0] not in RESERVED_OWNERS


def test_our_routes_are_reserved() -> None:
    routes = "api docs admin queue submit static healthz readyz metrics mcp clawhub marketplace.json .well-known login logout skills owners account search check-updates installs stream"
    assert set(routes.split()) <= RESERVED_OWNERS


def test_a4c_a_second_folder_of_the_same_name_gets_a_slug_of_its_own() -> None:
    one, two = normalise("a/b", "x/pdf"), normalise("a/b", "y/PDF")
    assert canonical_name(one) == canonical_name(two)
    slug = clash_slug(slug_of(two), two)
    assert slug.startswith("pdf~") and len(slug) == 10 and slug == clash_slug("pdf", two)
    assert canonical_name(two, slug) == f"a/b/{slug}" != canonical_name(one, clash_slug("pdf", one))


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("PDF Tools", "pdf-tools"),
        ("a:b~c%d", "a-b-c-d"),
        ("--a--b--", "a-b"),
        (".hidden", "hidden"),
        ("..", "skill"),
        ("???", "skill"),
        ("Größe", "grösse"),
        ("हिन्दी", "हिन्दी"),
        ("x" * 200, "x" * 100),
    ],
)
def test_slugs(text: str, slug: str) -> None:
    assert slugify(text) == slug


@given(st.text(max_size=30))
def test_a_slug_is_safe_in_keys_and_addresses(text: str) -> None:
    slug = slugify(text)
    assert slug and not set(slug) & set(":/~%?#\\ ") and slug not in (".", "..")
    assert keys.parse(keys.skill(f"a/b/{slug}")).parts == (f"a/b/{slug}",)


def test_alias_names_are_the_flat_names_of_a_skill() -> None:
    assert alias_names("pdf~abc123", "PDF Tools") == ("pdf", "pdf-tools", "pdf~abc123")
    assert alias_names("pdf", "") == ("pdf",)


# Version numbers.

ORDERED = [
    "0.0.1",
    "1.0.0-1",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.10",
    "1.2.0",
    "2.0.0",
    "10.0.0",
]


def test_versions_compare_as_semantic_versioning_says() -> None:
    parsed = [parse_semver(text) for text in ORDERED]
    assert [str(version) for version in parsed] == ORDERED
    for (i, one), (j, two) in itertools.product(enumerate(parsed), repeat=2):
        assert one is not None and two is not None
        assert (one.precedence < two.precedence) == (i < j)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1.0",
        "1.0.0.0",
        "v1.0.0",
        "01.0.0",
        "1.0.x",
        "1.0.0-",
        "1.0.0-01",
        "1.0.0-a..b",
        "1.0.0+",
        "1.0.0-ä",
        "\u0661.0.0",
        "1.0.1234567890",
        "1.0.0-1234567890",
        "1.0.0-" + "a" * 60,
        "1. 0.0",
        "-1.0.0",
        "1.0.0-a_b",
        "²0.0.0",
    ],
)
def test_what_is_no_semantic_version_of_reasonable_size(text: str) -> None:
    assert parse_semver(text) is None


def test_build_metadata_and_outer_spaces_are_not_kept() -> None:
    assert str(parse_semver(" 1.2.3-rc.1+build.5 ")) == "1.2.3-rc.1"


@pytest.mark.parametrize(
    ("taken", "declared", "number", "has_notice"),
    [
        ([], None, "1.0.0", True),
        ([], "", "1.0.0", True),
        ([], "latest", "1.0.0", True),
        ([], "0.3.0", "0.3.0", False),
        (["1.0.0"], None, "1.0.1", True),
        (["1.0.0"], "one", "1.0.1", True),
        (["1.0.0"], "1.0.0", "1.0.1", True),
        (["1.0.0"], "1.0.0+build", "1.0.1", True),
        (["1.0.0"], "1.1.0", "1.1.0", False),
        (["1.0.0", "1.10.0", "1.9.0"], None, "1.10.1", True),
        (["1.0.0-beta"], None, "1.0.1", True),
        (["1.0.0-beta"], "1.0.0", "1.0.0", False),
        (["999999999.0.999999998"], None, "999999999.0.999999999", True),
    ],
)
def test_the_next_version(taken: list[str], declared: str | None, number: str, has_notice: bool) -> None:
    assert next_version(taken, declared)[0] == number
    assert bool(next_version(taken, declared)[1]) == has_notice


@pytest.mark.parametrize(
    ("taken", "declared"), [(["1.0.0"], "0.9.9"), (["1.0.0"], "1.0.0-rc.1"), (["2.0.0", "1.0.0"], "1.5.0")]
)
def test_a_lower_version_is_refused_with_both_numbers(taken: list[str], declared: str) -> None:
    with pytest.raises(LowerVersion) as caught:
        next_version(taken, declared)
    assert declared in str(caught.value) and max(taken) in str(caught.value)
    assert caught.value.details == {"declared": declared, "published": max(taken)}


@pytest.mark.parametrize("taken", [[], ["1.0.0"]])
def test_the_notice_tells_a_missing_version_from_one_that_cannot_be_read(taken: list[str]) -> None:
    for missing in (None, "", "  "):
        assert next_version(taken, missing)[1].startswith("the front matter has no version; 1.0.")
    assert next_version(taken, "one")[1].startswith(
        "the front matter's version is not a semantic version; 1.0."
    )


def test_a_version_may_have_64_characters_and_nine_digits_in_a_number() -> None:
    assert str(parse_semver("123456789.0.0-123456789")) == "123456789.0.0-123456789"
    assert parse_semver("1.0.0-" + "a" * 58)
    assert parse_semver("1.0.0-" + "a" * 59) is None


def test_an_author_who_never_changes_the_front_matter_is_bumped_every_time() -> None:
    numbers = ["1.0.0"]
    for expected in ("1.0.1", "1.0.2", "1.0.3"):
        number, notice = next_version(numbers, "1.0.0", last_declared="1.0.0")
        assert number == expected and "already published" in notice
        numbers.append(number)
    assert next_version(numbers, "1.0.2", last_declared="1.0.0")[0] == "1.0.4"
    with pytest.raises(LowerVersion):
        next_version(numbers, "0.9.0", last_declared="1.0.0")


@given(st.lists(st.sampled_from([None, "", "junk", *ORDERED]), max_size=8))
def test_every_accepted_version_is_higher_than_all_before(declared: list[str | None]) -> None:
    numbers: list[str] = []
    for text in declared:
        try:
            number, _ = next_version(numbers, text)
        except LowerVersion:
            continue
        new = parse_semver(number)
        assert new is not None
        assert all(new.precedence > old.precedence for old in map(parse_semver, numbers) if old)
        numbers.append(number)


def test_bumping_goes_on_beyond_what_an_author_may_write() -> None:
    """The highest number is always recognised, or two versions would share one number."""
    number, _ = next_version(["1.0.999999999"], None)
    assert number == "1.0.1000000000"
    assert next_version(["1.0.999999999", number], None)[0] == "1.0.1000000001"


def test_a_stored_number_that_cannot_be_read_is_an_error_and_not_passed_over() -> None:
    with pytest.raises(RecordMalformed):
        next_version(["1.0.0", "broken"], None)


# Publishing.


def publication(content: str = "A", at: int = 1, place: Identity = PLACE, **more) -> Publication:
    files = [SkillFile("SKILL.md", "100644", content.encode())]
    manifest = manifest_of(files)
    outside = {name: more.pop(name) for name in Publication.__struct_fields__ if name in more}
    fields = {
        "canonical": canonical_name(place),
        "number": "",
        "name": "PDF",
        "digest": digest_of(manifest),
        "content_hash": content_hash(content.encode()),
        "tree_hash": tree_hash(files),
        "manifest": manifest,
        "certification": Certification.SCANNED,
        "score": 100,
        "published_at": at,
    }
    outside.setdefault("artifact", PLAIN)
    return Publication(SkillVersion(**{**fields, **more}), place, "worker:1", **outside)


def published(*contents: str) -> PublishedSkill:
    skill = None
    for at, content in enumerate(contents, 1):
        skill, _ = publish_version(skill, publication(content, at))
    assert skill is not None
    return skill


def digest(content: str) -> str:
    return publication(content).version.digest


def by(role: StatusRole, at: int = 50, reason: str = "because") -> StatusChange:
    return StatusChange(role, f"{role.value}:ann", at, reason)


def statuses(skill: PublishedSkill) -> dict[str, str]:
    return {ref.number: ref.status.value for ref in skill.versions}


def test_a14_the_first_publish_creates_the_skill_and_its_version_together() -> None:
    skill, version = publish_version(
        None, publication(commit="c0ffee", submission="sub_1", description="Reads PDFs")
    )
    assert version is not None
    assert (skill.canonical, skill.slug, skill.owner, skill.repo) == (
        "acme/tools/pdf",
        "pdf",
        "Acme",
        "Tools",
    )
    assert (
        (skill.current_version, skill.current_digest)
        == (version.number, version.digest)
        == ("1.0.0", digest("A"))
    )
    assert (skill.certification, skill.score, skill.withdrawn) == (Certification.SCANNED, 100, False)
    assert (skill.created_at, skill.updated_at, skill.submission) == (1, 1, "sub_1")
    assert (version.commit, version.submission, version.notice != "") == ("c0ffee", "sub_1", True)
    assert skill.content_hash == version.content_hash == skill.versions[0].content_hash
    assert skill.aliases == ("pdf",)


ABOUT = About("security", "MIT", "claude")
PLAIN, ZIP = Artifact(True, "a" * 64), Artifact(False, "b" * 64)
JUDGED = TrustFacts(Verdict.PASS, 90, Verdict.PASS, reviewed=True)
KNOWN = TrustFacts(
    Verdict.CONCERNS, 50, Verdict.CONCERNS, Provenance.VERIFIED, 7, 3, open_reports=2, ever_blocked=True
)


def test_a14_everything_that_was_published_is_in_the_records() -> None:
    whole = publication(
        at=7,
        description="Reads PDFs",
        repo_url="https://github.com/Acme/Tools",
        commit="c0ffee",
        front_matter_version="0.2.0",
        submission="sub_1",
        certification=Certification.VERIFIED,
        score=91,
        about=ABOUT,
        trust=JUDGED,
        artifact=PLAIN,
    )
    skill, version = publish_version(None, whole)
    assert version == SkillVersion(
        canonical="acme/tools/pdf",
        number="0.2.0",
        digest=whole.version.digest,
        content_hash=whole.version.content_hash,
        tree_hash=whole.version.tree_hash,
        manifest=whole.version.manifest,
        published_at=7,
        certification=Certification.VERIFIED,
        score=91,
        commit="c0ffee",
        declared="0.2.0",
        submission="sub_1",
        name="PDF",
        description="Reads PDFs",
    )
    ref = VersionRef(
        "0.2.0",
        whole.version.digest,
        7,
        PLAIN,
        "PDF",
        certification=Certification.VERIFIED,
        score=91,
        content_hash=whole.version.content_hash,
        declared="0.2.0",
        by="worker:1",
        reason="published",
    )
    assert skill == PublishedSkill(
        canonical="acme/tools/pdf",
        identity=PLACE,
        owner="Acme",
        repo="Tools",
        slug="pdf",
        name="PDF",
        description="Reads PDFs",
        repo_url="https://github.com/Acme/Tools",
        aliases=("pdf",),
        versions=(ref,),
        current_version="0.2.0",
        current_digest=whole.version.digest,
        content_hash=whole.version.content_hash,
        current_artifact=PLAIN,
        certification=Certification.VERIFIED,
        score=91,
        submission="sub_1",
        created_at=7,
        updated_at=7,
        about=ABOUT,
        trust=JUDGED,
        listing=listing(ABOUT, JUDGED, updated_at=7, created_at=7),
    )


def test_new_content_is_judged_anew_and_the_skill_keeps_its_standing() -> None:
    skill = with_trust(published("A"), KNOWN)
    assert skill.listing == listing(About(), KNOWN, updated_at=1, created_at=1)
    after, _ = publish_version(skill, publication("B", 9, trust=JUDGED, about=ABOUT))
    assert after.trust == TrustFacts(
        Verdict.PASS,
        90,
        Verdict.PASS,
        Provenance.VERIFIED,
        7,
        3,
        open_reports=2,
        ever_blocked=True,
        reviewed=True,
    )
    assert after.listing == listing(ABOUT, after.trust, updated_at=9, created_at=1)


def test_only_rescans_and_blocks_leave_a_mark_on_the_standing() -> None:
    for role in (StatusRole.SYSTEM, StatusRole.BLOCK, StatusRole.REVIEWER):
        down = take_down(published("A"), by(role))
        assert down.trust.ever_blocked == (role is not StatusRole.REVIEWER)
        assert down.listing is None
    again = restore(take_down(published("A", "B"), by(StatusRole.SYSTEM)), by(StatusRole.REVIEWER))
    assert again.trust.ever_blocked and again.listing is not None
    assert again.listing.trust_score == listing(About(), again.trust, updated_at=2, created_at=1).trust_score


def test_a_mark_on_the_standing_stays_and_lowers_the_score_at_once() -> None:
    down = take_down(published("A", "B"), by(StatusRole.SYSTEM), number="1.0.1")
    assert down.trust.ever_blocked and down.listing is not None
    assert down.listing == listing(About(), down.trust, updated_at=1, created_at=1)
    twice = take_down(down, by(StatusRole.SYSTEM), number="1.0.1")
    assert twice is down


def test_a15_the_current_digest_again_makes_no_new_version() -> None:
    before = published("A", "B")
    better = publication("B", 9, certification=Certification.VERIFIED, score=90, description="new words")
    skill, version = publish_version(before, better)
    assert version is None and statuses(skill) == statuses(before)
    assert (skill.certification, skill.score, skill.description) == (Certification.VERIFIED, 90, "new words")
    assert skill.versions[-1].certification is Certification.VERIFIED


@pytest.mark.parametrize("wrong", ["", "pending", "0" * 64])
def test_a15_a_placeholder_digest_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        publish_version(None, publication(digest=wrong))
    assert caught.value.field == "digest"


def test_a_return_to_older_content_is_a_new_version_of_the_same_bytes() -> None:
    skill = published("A", "B", "A")
    assert [(ref.number, ref.digest) for ref in skill.versions] == [
        ("1.0.0", digest("A")),
        ("1.0.1", digest("B")),
        ("1.0.2", digest("A")),
    ]


@pytest.mark.parametrize(
    "place",
    [
        normalise("https://gitlab.com/acme/tools", "skills/pdf"),
        normalise("acme/tools", "other/pdf"),
        normalise("acme/tools", "skills/pdf"),
        upload_identity("acme", "pdf"),
    ],
)
def test_a4b_publishing_refuses_another_identity(place: Identity) -> None:
    with pytest.raises(IdentityMismatch) as caught:
        publish_version(published("A"), publication("B", place=place, canonical="acme/tools/pdf"))
    assert "acme/tools/pdf" in str(caught.value)
    assert caught.value.details == {"canonical": "acme/tools/pdf", "owner": PLACE.key}


def test_a4b_publishing_refuses_another_name_for_the_same_record() -> None:
    with pytest.raises(IdentityMismatch):
        publish_version(published("A"), publication("B", canonical="acme/tools/other"))


def test_the_same_place_in_another_spelling_may_publish() -> None:
    skill, version = publish_version(
        published("A"), publication("B", 2, normalise("ACME/TOOLS", "skills/PDF"))
    )
    assert version is not None and skill.current_version == "1.0.1"


def test_the_front_matter_decides_the_number_unless_it_stands_still() -> None:
    skill, numbers = None, []
    for content, declared in zip("ABCDE", ["0.1.0", "0.1.0", "0.1.0", "0.2.0", None], strict=True):
        skill, version = publish_version(skill, publication(content, front_matter_version=declared))
        assert version is not None
        numbers.append((version.number, version.declared))
    assert numbers == [
        ("0.1.0", "0.1.0"),
        ("0.1.1", "0.1.0"),
        ("0.1.2", "0.1.0"),
        ("0.2.0", "0.2.0"),
        ("0.2.1", None),
    ]
    with pytest.raises(LowerVersion):
        publish_version(skill, publication("F", front_matter_version="0.1.5"))


def test_a3_a_new_name_is_another_alias_and_never_another_key() -> None:
    skill, _ = publish_version(published("A"), publication("B", 2, name="Paper Reader"))
    assert (skill.canonical, skill.name) == ("acme/tools/pdf", "Paper Reader")
    assert skill.aliases == ("paper-reader", "pdf")


def test_each_version_keeps_its_name_and_the_skill_has_that_of_its_current_one() -> None:
    skill, _ = publish_version(published("A"), publication("B", 2, name="Paper Reader"))
    assert [ref.name for ref in skill.versions] == ["PDF", "Paper Reader"]
    assert yank(skill, by(StatusRole.OWNER), number="1.0.1").name == "PDF"
    assert yank(skill, by(StatusRole.OWNER)).name == "Paper Reader"


def test_each_version_keeps_its_artifact_and_the_current_one_is_the_skills() -> None:
    skill, _ = publish_version(published("A"), publication("B", 2, artifact=ZIP))
    assert [ref.artifact for ref in skill.versions] == [PLAIN, ZIP]
    assert skill.current_artifact == ZIP
    assert yank(skill, by(StatusRole.OWNER), number="1.0.1").current_artifact == PLAIN
    assert yank(skill, by(StatusRole.OWNER)).current_artifact is None


def test_installs_change_the_standing_and_what_lists_show_of_it() -> None:
    skill = with_installs(with_trust(published("A"), KNOWN), 900)
    assert skill.trust == msgspec.structs.replace(KNOWN, installs=900)
    assert skill.listing == listing(About(), skill.trust, updated_at=1, created_at=1)


def test_time_never_runs_backwards_in_the_record() -> None:
    skill, _ = publish_version(published("A", "B"), publication("C", at=0))
    assert skill.updated_at == 3


# Yank, take down, restore.

OPERATIONS = {"yank": yank, "unyank": unyank, "take_down": take_down, "restore": restore}
ALLOWED = {
    "yank": {StatusRole.OWNER},
    "unyank": {StatusRole.OWNER},
    "take_down": {StatusRole.SYSTEM, StatusRole.BLOCK, StatusRole.REVIEWER},
    "restore": {StatusRole.REVIEWER},
}
#: what each operation makes of each status; None is refused
BECOMES = {
    ("yank", "live"): "yanked",
    ("yank", "yanked"): None,
    ("yank", "taken_down"): None,
    ("unyank", "live"): None,
    ("unyank", "yanked"): "live",
    ("unyank", "taken_down"): None,
    ("take_down", "live"): "taken_down",
    ("take_down", "yanked"): "taken_down",
    ("take_down", "taken_down"): "taken_down",
    ("restore", "live"): None,
    ("restore", "yanked"): None,
    ("restore", "taken_down"): "live",
}


def in_status(status: VersionStatus) -> PublishedSkill:
    skill = published("A", "B")
    if status is VersionStatus.YANKED:
        return yank(skill, by(StatusRole.OWNER), number="1.0.1")
    return (
        take_down(skill, by(StatusRole.SYSTEM), number="1.0.1")
        if status is VersionStatus.TAKEN_DOWN
        else skill
    )


@pytest.mark.parametrize(
    ("name", "role", "status"), list(itertools.product(OPERATIONS, StatusRole, VersionStatus))
)
def test_who_may_do_what_to_which_version(name: str, role: StatusRole, status: VersionStatus) -> None:
    skill, becomes = in_status(status), BECOMES[name, status.value]
    if role not in ALLOWED[name]:
        with pytest.raises(NotPermitted) as refused:
            OPERATIONS[name](skill, by(role), number="1.0.1")
        assert refused.value.details == {"role": role.value}
    elif becomes is None:
        with pytest.raises(VersionStatusError) as wrong:
            OPERATIONS[name](skill, by(role), number="1.0.1")
        assert wrong.value.details == {"number": "1.0.1", "status": status.value}
        assert f"Version 1.0.1 is {status.value}, not " in str(wrong.value)
    else:
        changed = OPERATIONS[name](skill, by(role), number="1.0.1")
        assert statuses(changed) == {"1.0.0": "live", "1.0.1": becomes}
        assert changed.current_version == ("1.0.1" if becomes == "live" else "1.0.0")


def test_taking_the_current_one_down_makes_the_newest_remaining_current_or_none() -> None:
    skill = published("A", "B", "C")
    skill = take_down(skill, by(StatusRole.SYSTEM), number="1.0.2")
    assert (skill.current_version, skill.current_digest, skill.withdrawn) == ("1.0.1", digest("B"), False)
    assert skill.versions[2].reason == "because" and skill.versions[2].by == "system:ann"
    skill = yank(skill, by(StatusRole.OWNER), number="1.0.1")
    assert skill.current_version == "1.0.0"
    skill = take_down(skill, by(StatusRole.REVIEWER))
    assert (skill.current_version, skill.current_digest, skill.certification) == (None, None, None)
    assert skill.withdrawn and skill.updated_at == 52
    assert (skill.content_hash, skill.score) == (None, 0)


def test_taking_down_by_digest_reaches_every_version_of_those_bytes() -> None:
    skill = take_down(published("A", "B", "A"), by(StatusRole.SYSTEM), digest=digest("A"))
    assert statuses(skill) == {"1.0.0": "taken_down", "1.0.1": "live", "1.0.2": "taken_down"}
    back = restore(skill, by(StatusRole.REVIEWER), digest=digest("A"))
    assert set(statuses(back).values()) == {"live"} and back.current_version == "1.0.2"
    all_down = take_down(published("A", "B", "A"), by(StatusRole.REVIEWER))
    half = restore(all_down, by(StatusRole.REVIEWER), digest=digest("B"))
    assert statuses(half) == {"1.0.0": "taken_down", "1.0.1": "live", "1.0.2": "taken_down"}


def test_what_is_applied_again_changes_nothing() -> None:
    down = take_down(published("A"), by(StatusRole.SYSTEM))
    assert take_down(down, by(StatusRole.SYSTEM, at=99)) is down


def test_an_owner_who_deletes_the_skill_yanks_all_that_is_live() -> None:
    skill = take_down(published("A", "B", "C"), by(StatusRole.SYSTEM), number="1.0.1")
    gone = yank(skill, by(StatusRole.OWNER))
    assert statuses(gone) == {"1.0.0": "yanked", "1.0.1": "taken_down", "1.0.2": "yanked"}
    assert gone.withdrawn


def test_an_owner_who_gives_the_skill_up_deletes_every_version_and_what_was_taken_down_stays_so() -> None:
    skill = take_down(published("A", "B", "C"), by(StatusRole.SYSTEM), number="1.0.1")
    gone = delete(yank(skill, by(StatusRole.OWNER), number="1.0.0"), by(StatusRole.OWNER, at=70))
    assert statuses(gone) == {"1.0.0": "yanked", "1.0.1": "taken_down", "1.0.2": "yanked"}
    assert [(ref.deleted, ref.owner_yanked) for ref in gone.versions] == [(True, True)] * 3
    assert [ref.status_at for ref in gone.versions] == [70, 50, 70]
    assert delete(gone, by(StatusRole.OWNER, at=90)) is gone
    restored = restore(gone, by(StatusRole.REVIEWER, at=90), number="1.0.1").versions[1]
    assert (restored.status, restored.deleted) == (VersionStatus.YANKED, True)


def test_yanking_is_no_deletion_and_bringing_a_version_back_ends_one() -> None:
    yanked = yank(published("A"), by(StatusRole.OWNER))
    assert yanked.versions[0].deleted is False
    back = unyank(delete(yanked, by(StatusRole.OWNER)), by(StatusRole.OWNER), number="1.0.0")
    assert back.versions[0].deleted is False


def test_a_version_that_was_taken_down_says_since_when_for_what_and_how_bad_until_it_is_back() -> None:
    found = StatusChange(StatusRole.SYSTEM, "system", 50, "it steals keys", "credential-theft", Severity.HIGH)
    (down,) = take_down(published("A"), found).versions
    assert (down.status_at, down.threat_type, down.severity) == (50, "credential-theft", Severity.HIGH)
    judged = msgspec.structs.replace(found, role=StatusRole.REVIEWER, at=60)
    (back,) = restore(take_down(published("A"), found), judged).versions
    assert (back.status_at, back.threat_type, back.severity) == (60, "", None)


def test_a_reviewer_does_not_undo_what_the_owner_yanked() -> None:
    skill = yank(published("A", "B"), by(StatusRole.OWNER), number="1.0.1")
    skill = take_down(skill, by(StatusRole.SYSTEM), number="1.0.1")
    skill = restore(skill, by(StatusRole.REVIEWER), number="1.0.1")
    assert statuses(skill)["1.0.1"] == "yanked" and skill.current_version == "1.0.0"
    back = unyank(skill, by(StatusRole.OWNER), number="1.0.1")
    assert back.current_version == "1.0.1"
    down = take_down(back, by(StatusRole.SYSTEM), number="1.0.1")
    assert restore(down, by(StatusRole.REVIEWER), number="1.0.1").current_version == "1.0.1"


def test_a_version_that_is_not_there_and_a_missing_reason_are_refused() -> None:
    with pytest.raises(NotFound) as missing:
        yank(published("A"), by(StatusRole.OWNER), number="9.9.9")
    assert missing.value.details == {"canonical": "acme/tools/pdf"}
    with pytest.raises(NotFound):
        take_down(published("A"), by(StatusRole.SYSTEM), digest="0" * 64)
    with pytest.raises(InvalidInput) as caught:
        yank(published("A"), by(StatusRole.OWNER, reason=" "), number="1.0.0")
    assert caught.value.field == "reason"


def test_publishing_a_digest_whose_latest_version_was_taken_down_restores_that_version() -> None:
    down = take_down(published("A", "B"), by(StatusRole.SYSTEM), number="1.0.1")
    skill, version = publish_version(down, publication("B", 60, certification=Certification.VERIFIED))
    assert version is None
    assert (skill.current_version, skill.certification) == ("1.0.1", Certification.VERIFIED)
    assert statuses(skill) == {"1.0.0": "live", "1.0.1": "live"} and skill.versions[1].reason


def test_publishing_brings_back_a_skill_of_which_nothing_was_left() -> None:
    skill, version = publish_version(take_down(published("A"), by(StatusRole.SYSTEM)), publication("A", 60))
    assert (version, skill.withdrawn, skill.current_version) == (None, False, "1.0.0")


def test_a_restored_version_that_a_newer_one_outranks_comes_back_as_a_new_version() -> None:
    down = take_down(published("A", "B"), by(StatusRole.SYSTEM), number="1.0.0")
    skill, version = publish_version(down, publication("A", 60))
    assert version is not None and version.number == "1.0.2"
    assert statuses(skill) == {"1.0.0": "live", "1.0.1": "live", "1.0.2": "live"}


def test_a_yanked_version_stays_yanked_when_its_content_is_published_again() -> None:
    skill, version = publish_version(
        yank(published("A", "B"), by(StatusRole.OWNER), number="1.0.1"), publication("B", 60)
    )
    assert version is not None and statuses(skill) == {"1.0.0": "live", "1.0.1": "yanked", "1.0.2": "live"}


def test_a_rescan_changes_the_certification_in_place() -> None:
    before = published("A", "B", "A")
    skill = recertify(before, digest("A"), Certification.VERIFIED, 90, 70)
    assert [ref.certification for ref in skill.versions] == ["VERIFIED", "SCANNED", "VERIFIED"]
    assert (skill.certification, skill.score, skill.updated_at) == (Certification.VERIFIED, 90, 70)
    assert statuses(skill) == statuses(before)


def test_certification_is_total_over_its_facts() -> None:
    for judged, reviewed, vendor in itertools.product((False, True), repeat=3):
        level = certification_for(judged=judged, reviewed=reviewed, trusted_vendor=vendor)
        assert level == ("CERTIFIED" if reviewed or vendor else "VERIFIED" if judged else "SCANNED")
    assert [level.rank for level in Certification] == [0, 1, 2]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.sampled_from("ABC")),
        st.tuples(st.sampled_from(sorted(OPERATIONS)), st.sampled_from(["1.0.0", "1.0.1", "1.0.2"])),
    ),
    max_size=14,
)
ROLES = {
    "yank": StatusRole.OWNER,
    "unyank": StatusRole.OWNER,
    "take_down": StatusRole.SYSTEM,
    "restore": StatusRole.REVIEWER,
}


@given(STEPS)
@settings(deadline=None, max_examples=examples(100))
def test_whatever_happens_the_record_agrees_with_its_versions(steps: list[tuple[str, str]]) -> None:
    """A14, A15: every listed version has its record, and what is published is current afterwards."""
    skill, _ = publish_version(None, publication("A", 0))
    written = {"1.0.0": digest("A")}
    for at, (name, value) in enumerate(steps, 1):
        if name == "publish":
            skill, version = publish_version(skill, publication(value, at))
            assert skill.current_digest == digest(value)
            if version is not None:
                assert version.number not in written
                written[version.number] = version.digest
        else:
            try:
                skill = OPERATIONS[name](skill, by(ROLES[name], at), number=value)
            except PlatformError:
                continue
        live = [ref for ref in skill.versions if ref.status is VersionStatus.LIVE]
        assert {ref.number: ref.digest for ref in skill.versions} == written
        assert skill.withdrawn == (not live) == (skill.current_version is None)
        if live:
            assert (skill.current_version, skill.current_digest) == (live[-1].number, live[-1].digest)


# Storage.


def test_withdrawn_is_always_written() -> None:
    for skill in (published("A"), take_down(published("A"), by(StatusRole.SYSTEM))):
        stored = msgspec.json.decode(msgspec.json.encode(skill))
        assert stored["withdrawn"] is skill.withdrawn
        assert msgspec.convert(stored, PublishedSkill) == skill


def test_an_old_record_stays_readable() -> None:
    """One of each age: these are the smallest records that were ever written."""
    old = b'{"canonical":"a/b/c","identity":{"host":"github.com","owner":"a","repo":"b","path":"c"}}'
    assert msgspec.json.decode(old, type=PublishedSkill).versions == ()
    version = (
        b'{"canonical":"a/b/c","number":"1.0.0","digest":"d","content_hash":"c","tree_hash":"t",'
        b'"manifest":[{"path":"SKILL.md","mode":"100644","size":1,"sha256":"s"}],"published_at":5}'
    )
    assert msgspec.json.decode(version, type=SkillVersion).certification is Certification.SCANNED


# What a block takes down comes back with it, and nothing else does.


def blocked(*contents: str, role: StatusRole = StatusRole.BLOCK, reason: str = "malware") -> PublishedSkill:
    change = StatusChange(role, "system", 50, reason)
    return take_down(published(*contents), change, digest=digest(contents[0]))


def lifted(skill: PublishedSkill, content: str = "A") -> dict[str, str]:
    change = StatusChange(StatusRole.BLOCK, "system", 60, "lifted")
    return statuses(unblock(skill, change, digest=digest(content)))


def test_what_a_block_took_down_is_live_again_when_the_block_is_lifted() -> None:
    skill = blocked("A", "B")
    assert statuses(skill) == {"1.0.0": "taken_down", "1.0.1": "live"}
    assert lifted(skill) == {"1.0.0": "live", "1.0.1": "live"}
    assert lifted(skill, "B") == {"1.0.0": "taken_down", "1.0.1": "live"}


@pytest.mark.parametrize("role", [StatusRole.SYSTEM, StatusRole.REVIEWER])
def test_what_a_rescan_or_a_person_took_down_stays_down_when_a_block_is_lifted(role: StatusRole) -> None:
    skill = blocked("A", role=role, reason=f"{BLOCK_REASON}: whatever they write")
    assert lifted(skill) == {"1.0.0": "taken_down"}


def test_a_reviewers_word_replaces_that_of_a_block_and_outlasts_it() -> None:
    skill = take_down(blocked("A"), by(StatusRole.REVIEWER, 55, "malicious, I read it"))
    assert skill.versions[0].reason == "malicious, I read it"
    assert lifted(skill) == {"1.0.0": "taken_down"}


def test_a_block_does_not_replace_the_word_of_a_reviewer_and_a_reviewer_not_that_of_another() -> None:
    skill = take_down(published("A"), by(StatusRole.REVIEWER, 55, "malicious"))
    for change in (
        StatusChange(StatusRole.BLOCK, "system", 60, "x"),
        by(StatusRole.REVIEWER, 61, "me too"),
    ):
        assert take_down(skill, change).versions[0].reason == "malicious"


def test_a_block_that_is_applied_again_changes_nothing() -> None:
    again = StatusChange(StatusRole.BLOCK, "system", 70, "more")
    assert take_down(blocked("A"), again).versions[0].reason == "malware"


# Under review.

DOUBT = OpenReview("1 finding of malice (X-1) needs a reviewer", 60, ("X-1",))


def test_what_is_under_review_stays_live_and_keeps_its_first_time() -> None:
    skill = published("A", "B")
    marked = put_under_review(skill, digest("B"), DOUBT, 60)
    assert (marked.current_version, marked.updated_at) == (skill.current_version, 60)
    assert [ref.review for ref in marked.versions] == [None, DOUBT]
    assert statuses(marked) == statuses(skill) and is_under_review(marked)
    again = put_under_review(marked, digest("B"), OpenReview("worse", 70), 70)
    assert again.versions[-1].review == OpenReview("worse", 60)
    assert put_under_review(again, digest("B"), OpenReview("worse", 90), 90) == again


def test_a_doubt_about_other_content_does_not_make_a_review_older() -> None:
    skill = put_under_review(published("A", "B"), digest("A"), DOUBT, 60)
    both = put_under_review(skill, digest("B"), OpenReview("worse", 70), 70)
    assert [ref.review for ref in both.versions] == [DOUBT, OpenReview("worse", 70)]


def test_only_the_current_version_makes_a_skill_under_review_and_the_newest_is_reviewed_first() -> None:
    skill = put_under_review(published("A", "B", "C"), digest("A"), DOUBT, 60)
    assert not is_under_review(skill) and newest_under_review(skill) == skill.versions[0]
    skill = put_under_review(skill, digest("B"), DOUBT, 60)
    assert newest_under_review(skill) == skill.versions[1]
    assert newest_under_review(published("A")) is None and not is_under_review(published("A"))


def test_a_reviewer_keeps_it_live_and_certified() -> None:
    skill = keep_live(put_under_review(published("A"), digest("A"), DOUBT, 60), digest("A"), "admin:ada", 70)
    (ref,) = skill.versions
    assert (ref.review, ref.kept_by, ref.certification) == (None, "admin:ada", Certification.CERTIFIED)
    assert (skill.certification, skill.updated_at) == (Certification.CERTIFIED, 70)


def test_better_rules_end_a_review() -> None:
    skill = put_under_review(published("A"), digest("A"), DOUBT, 60)
    (ref,) = recertify(skill, digest("A"), Certification.VERIFIED, 97, 70).versions
    assert (ref.review, ref.certification, ref.score) == (None, Certification.VERIFIED, 97)


def test_taking_down_ends_a_review_and_yanking_does_not() -> None:
    skill = put_under_review(published("A"), digest("A"), DOUBT, 60)
    yanked = yank(skill, by(StatusRole.OWNER, 70))
    assert newest_under_review(yanked) is None
    assert newest_under_review(unyank(yanked, by(StatusRole.OWNER, 80), number="1.0.0")) is not None
    gone = take_down(skill, by(StatusRole.SYSTEM, 70))
    assert gone.versions[0].review is None
    assert put_under_review(gone, digest("A"), DOUBT, 80) == gone
    assert keep_live(gone, digest("A"), "admin:ada", 80) == gone


def test_a_version_names_the_rules_that_judged_it() -> None:
    skill, _ = publish_version(None, publication(ruleset="rules-1"))
    assert skill.versions[0].ruleset == "rules-1"


def test_a_list_says_what_the_current_version_is_without_and_not_the_one_that_was_published_last():
    skill, _ = publish_version(None, publication("A", 1, without="network"))
    skill, _ = publish_version(skill, publication("B", 2, without="network,secrets"))
    assert skill.listing is not None and skill.listing.without == "network,secrets"
    skill = yank(skill, by(StatusRole.OWNER), number=skill.versions[-1].number)
    assert skill.listing is not None and skill.listing.without == "network"


def test_new_rules_can_say_what_these_bytes_are_without_and_take_it_back():
    skill = published("A", "B")
    assert skill.listing is not None and skill.listing.without is None
    known = with_lacks(skill, digest("B"), "files")
    assert [ref.without for ref in known.versions] == [None, "files"]
    assert known.listing is not None and known.listing.without == "files"
    assert known.updated_at == skill.updated_at
    assert with_lacks(known, digest("B"), None) == skill
