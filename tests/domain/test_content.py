"""Content: the digest covers everything (A19), paths are safe, bundles verify themselves."""

import contextlib
import hashlib
from typing import get_args

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from vskill_core.content import (
    MODES,
    ContentLimits,
    FileEntry,
    Mode,
    SkillFile,
    check_files,
    check_path,
    digest_of,
    digest_of_files,
    manifest_lines,
    manifest_of,
    skill_file_of,
)
from vskill_core.errors import (
    ContentDamaged,
    InvalidInput,
    LimitExceeded,
    NoSkillFound,
    StoreCorrupt,
)
from vskill_platform.domain.client_hashes import content_hash, tree_hash
from vskill_platform.domain.operation.damage import verified_files
from vskill_platform.domain.packed_content import pack, unpack

SKILL = SkillFile("SKILL.md", "100644", b"---\nname: pdf\n---\n")
SCRIPT = SkillFile("scripts/run.sh", "100755", b"#!/bin/sh\necho hi\n")

PATH_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
MODE = st.sampled_from(MODES)
FILES = st.dictionaries(PATH_TEXT, st.tuples(MODE, st.binary(max_size=40)), max_size=5).map(
    lambda tree: tuple(SkillFile(path, mode, data) for path, (mode, data) in tree.items())
)
ENTRIES = st.builds(
    FileEntry, PATH_TEXT, MODE, st.integers(0, 10**9), st.from_regex(r"[0-9a-f]{64}", fullmatch=True)
)


def test_modes_are_exactly_those_of_the_type() -> None:
    assert get_args(Mode) == MODES


# The digest.


def test_the_digest_is_the_sha256_of_lines_that_anyone_can_write_down() -> None:
    line = f"100644 {len(SKILL.data)} {hashlib.sha256(SKILL.data).hexdigest()} 8:SKILL.md\n".encode()
    manifest = manifest_of([SKILL])
    assert manifest_lines(manifest) == line
    assert digest_of(manifest) == hashlib.sha256(line).hexdigest() == digest_of_files([SKILL])


def test_a19_only_a_script_changed_and_the_digest_changed() -> None:
    changed = msgspec.structs.replace(SCRIPT, data=SCRIPT.data + b"curl evil\n")
    assert content_hash(SKILL.data) == content_hash(SKILL.data)
    assert digest_of_files([SKILL, SCRIPT]) != digest_of_files([SKILL, changed])


def test_a19_only_a_mode_or_only_a_path_changed_and_the_digest_changed() -> None:
    digests = {
        digest_of_files([SKILL, SCRIPT]),
        digest_of_files([SKILL, msgspec.structs.replace(SCRIPT, mode="100644")]),
        digest_of_files([SKILL, msgspec.structs.replace(SCRIPT, path="scripts/ran.sh")]),
        digest_of_files([SKILL]),
    }
    assert len(digests) == 4


@given(FILES, FILES)
@settings(deadline=None)
def test_a19_equal_digests_mean_equal_content(
    left: tuple[SkillFile, ...], right: tuple[SkillFile, ...]
) -> None:
    assert (digest_of_files(left) == digest_of_files(right)) == (set(left) == set(right))


@given(FILES.filter(bool), st.data())
@settings(deadline=None)
def test_a19_any_single_change_is_another_digest(files: tuple[SkillFile, ...], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(files) - 1))
    field = data.draw(st.sampled_from(["path", "mode", "data"]))
    values = {"path": PATH_TEXT, "mode": MODE, "data": st.binary(max_size=40)}
    changed = msgspec.structs.replace(files[index], **{field: data.draw(values[field])})
    assume(changed != files[index] and changed.path not in {f.path for f in files if f is not files[index]})
    others = (*files[:index], changed, *files[index + 1 :])
    assert digest_of_files(others) != digest_of_files(files)


@given(FILES, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_files_does_not_count(files: tuple[SkillFile, ...], random) -> None:
    shuffled = list(files)
    random.shuffle(shuffled)
    assert manifest_of(shuffled) == manifest_of(files)
    assert manifest_lines(reversed(manifest_of(files))) == manifest_lines(manifest_of(files))
    assert tree_hash(shuffled) == tree_hash(files)
    assert pack(shuffled) == pack(files)


@pytest.mark.slow
@given(
    st.lists(ENTRIES, max_size=4, unique_by=lambda e: e.path),
    st.lists(ENTRIES, max_size=4, unique_by=lambda e: e.path),
)
@settings(deadline=None)
def test_the_lines_of_two_manifests_are_equal_only_if_the_manifests_are(
    left: list[FileEntry], right: list[FileEntry]
) -> None:
    assert (manifest_lines(left) == manifest_lines(right)) == (set(left) == set(right))


def test_a_newline_in_a_path_cannot_imitate_a_second_file() -> None:
    two = manifest_of([SkillFile("a", "100644", b"1"), SkillFile("b", "100644", b"2")])
    tail = manifest_lines(two[1:]).decode().removesuffix("\n")
    one = [FileEntry(f"a\n{tail}", two[0].mode, two[0].size, two[0].sha256)]
    assert manifest_lines(one) != manifest_lines(two)


def test_files_sort_by_the_bytes_of_their_paths() -> None:
    files = [SkillFile(path, "100644", b"") for path in ("b", "a/b", "a", "\U0001f600", "\ufb01", "B")]
    assert [entry.path for entry in manifest_of(files)] == ["B", "a", "a/b", "b", "\ufb01", "\U0001f600"]


def test_a_path_given_twice_has_no_manifest() -> None:
    with pytest.raises(InvalidInput):
        manifest_of([SKILL, msgspec.structs.replace(SKILL, data=b"other")])


# Hashes on the wire.


@pytest.mark.parametrize(
    "spelling",
    [b"a\nb\n", b"\xef\xbb\xbfa\nb\n", b"a\r\nb\r\n", b"\xef\xbb\xbfa\r\nb\n"],
)
def test_content_hash_ignores_a_byte_order_mark_and_crlf(spelling: bytes) -> None:
    assert content_hash(spelling) == hashlib.sha256(b"a\nb\n").hexdigest()


def test_content_hash_keeps_a_lone_carriage_return_as_the_clients_do() -> None:
    assert content_hash(b"a\rb") == hashlib.sha256(b"a\rb").hexdigest()


def test_tree_hash_is_path_nul_bytes_lf_in_path_order() -> None:
    expected = hashlib.sha256(b"A.md\0x\ny\n" + b"b.md\0z\n").hexdigest()
    files = [SkillFile("b.md", "100755", b"z"), SkillFile("A.md", "100644", b"\xef\xbb\xbfx\r\ny")]
    assert tree_hash(files) == expected


def test_tree_hash_sorts_and_reads_as_a_javascript_client_does() -> None:
    """UTF-16 code units put U+1F600 (d83d de00) before U+FB01; bytes that are not UTF-8 read as U+FFFD."""
    files = [SkillFile("\ufb01", "100644", b"\xff"), SkillFile("\U0001f600", "100644", b"")]
    expected = "\U0001f600\0\n".encode() + "\ufb01\0\ufffd\n".encode()
    assert tree_hash(files) == hashlib.sha256(expected).hexdigest()


# Admission.


@pytest.mark.parametrize(
    "name",
    [
        ".git",
        ".GIT",
        ".git.",
        ".git ",
        "GIT~1",
        ".g\u200cit",
        ".git\ufeff",
        "a" * 256,
        "é" * 128,
        "con",
        "NUL.txt",
        "com1",
        "LPT9.md",
        "aux .md",
        "end.",
        "end ",
        "a:b",
        "what?",
        "a*b",
        'a"b',
    ],
)
def test_a_name_that_some_system_cannot_write_or_takes_for_a_repository_is_refused(name: str) -> None:
    """One rule for every source, with the name and the fix."""
    for path in (name, f"{name}/config", f"a/{name}"):
        with pytest.raises(InvalidInput) as refused:
            check_files([SkillFile(path, "100644", b"")])
        assert refused.value.details["field"] == "path"
        assert refused.value.details["fix"]


@pytest.mark.parametrize(("first", "second"), [("a.md", "A.md"), ("\u00e9", "e\u0301"), ("ab", "a\u200bb")])
def test_names_that_some_system_takes_for_one_collide(first: str, second: str) -> None:
    with pytest.raises(InvalidInput, match="is not accepted"):
        check_files([SkillFile(first, "100644", b""), SkillFile(second, "100644", b"")])


@pytest.mark.parametrize(
    "path", ["SKILL.md", "scripts/run.sh", "a b/ü.txt", ".hidden", "a/..b", "icon.txt", "a" * 255]
)
def test_good_paths(path: str) -> None:
    check_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "a//b",
        "a/",
        "./a",
        "../a",
        "a/../b",
        "a\\b",
        "C:/x",
        "C:x",
        "a\nb",
        "a\0b",
        "a\x7f",
        "a\u202eb",
        "\ud800",
    ],
)
def test_bad_paths_name_the_field_and_the_fix(path: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_path(path)
    assert caught.value.field == "path" and caught.value.fix
    str(caught.value).encode()


def test_a_long_path_is_cut_where_it_is_named() -> None:
    with pytest.raises(InvalidInput, match=f"'{'x' * 80}'"):
        check_path("x" * 81 + "//")
    for path, limits in (
        ("x" * 81, ContentLimits(path_length=80)),
        ("x/" * 41 + "x", ContentLimits(depth=41)),
    ):
        with pytest.raises(LimitExceeded) as caught:
            check_path(path, limits)
        assert caught.value.details["path"] == path[:80]


LIMITS = ContentLimits(files=2, bytes_total=10, bytes_file=8, path_length=6, depth=2)


def of(path: str, size: int = 0) -> SkillFile:
    return SkillFile(path, "100644", b"x" * size)


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ([of("a"), of("b"), of("c")], "files"),
        ([of("a", 6), of("b", 5)], "bytes_total"),
        ([of("a", 9)], "bytes_file"),
        ([of("ü" * 4)], "path_length"),
        ([of("a/b/c")], "depth"),
    ],
)
def test_each_limit_is_named_by_its_error(files: list[SkillFile], limit: str) -> None:
    with pytest.raises(LimitExceeded) as caught:
        check_files(files, LIMITS)
    assert caught.value.details["limit"] == limit
    found, allowed = caught.value.details["found"], caught.value.details["allowed"]
    assert isinstance(found, int) and isinstance(allowed, int) and found > allowed
    assert f"{limit}: {found}, and at most {allowed}" in str(caught.value)
    named = None if limit in ("files", "bytes_total") else files[0].path
    assert caught.value.details.get("path") == named


def test_exactly_at_every_limit_is_accepted() -> None:
    check_files([of("a/bcde", 8), of("b", 2)], LIMITS)


@pytest.mark.parametrize(
    "paths",
    [
        ["a", "a"],
        ["README.md", "readme.MD"],
        ["\u00e9", "e\u0301"],
        ["straße", "STRASSE"],
        ["a", "a/b"],
        ["A", "a/b"],
    ],
)
def test_paths_that_collide_on_some_file_system_are_refused(paths: list[str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_files([of(path) for path in paths])
    assert caught.value.field == "path" and caught.value.fix


def test_files_in_different_folders_do_not_collide() -> None:
    check_files([SKILL, SCRIPT, of("scripts/SKILL.md"), of("docs/run.sh")])


def test_a17_only_a_skill_md_at_the_root_makes_a_skill() -> None:
    assert skill_file_of([SCRIPT, SKILL]) is SKILL
    for files in ([], [SCRIPT], [of("docs/SKILL.md")], [of("skill.md")]):
        with pytest.raises(NoSkillFound):
            skill_file_of(files)


# Bundles.


@given(FILES)
@settings(deadline=None)
def test_a_bundle_gives_back_what_was_packed(files: tuple[SkillFile, ...]) -> None:
    back = unpack(pack(files), digest_of_files(files))
    assert set(back) == set(files) and len(back) == len(files)
    assert manifest_of(back) == manifest_of(files)


@given(FILES, st.data())
@settings(deadline=None, max_examples=examples(100))
def test_a_bundle_with_any_damage_is_corrupt_and_nothing_else(
    files: tuple[SkillFile, ...], data: st.DataObject
) -> None:
    whole = pack(files)
    at = data.draw(st.integers(0, len(whole) - 1))
    damages = [
        whole[:at],
        whole[:at] + whole[at + 1 :],
        whole + b"x",
        whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :],
    ]
    for damaged in damages:
        with pytest.raises(StoreCorrupt):
            unpack(damaged, digest_of_files(files))


@given(st.binary(max_size=200))
def test_unpacking_anything_at_all_never_raises_another_error(junk: bytes) -> None:
    for data in (junk, b"vskill-bundle 1\n" + junk, b"vskill-bundle 1\n%d\n" % len(junk) + junk):
        with contextlib.suppress(StoreCorrupt):
            unpack(data)


def bundle(lines: bytes, body: bytes = b"") -> bytes:
    return b"vskill-bundle 1\n%d\n" % len(lines) + lines + body


EMPTY = hashlib.sha256(b"").hexdigest().encode()


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        (b"something else", "begin as a bundle"),
        (b"vskill-bundle 1\n9\nshort", "whole manifest"),
        (b"vskill-bundle 1\nx\n", "number"),
        (bundle(b"120000 0 " + EMPTY + b" 1:a\n"), "cannot be read"),
        (bundle(b"100644 0 " + EMPTY + b":a\n"), "cannot be read"),
        (bundle(b"100644 0 " + EMPTY + b" 1:\xff\n"), "UTF-8"),
        (bundle(b"100644 00 " + EMPTY + b" 1:a\n"), "one valid form"),
        (bundle((b"100644 0 " + EMPTY + b" 1:a\n") * 2), "twice"),
        (bundle(b"100644 0 " + EMPTY + b" 1:a\n", b"x"), "length"),
        (bundle(b"100644 1 " + EMPTY + b" 1:a\n", b"x"), "checksum"),
        (bundle(b"100644 " + b"9" * 15 + b" " + EMPTY + b" 1:a\n"), "length"),
        (bundle(b"100644 " + b"9" * 16 + b" " + EMPTY + b" 1:a\n"), "number"),
    ],
)
def test_each_kind_of_damage_has_its_reason(damaged: bytes, reason: str) -> None:
    with pytest.raises(StoreCorrupt) as caught:
        unpack(damaged)
    assert reason in str(caught.value)
    assert reason in str(caught.value.details["reason"])
    assert caught.value.details.get("path") == ("a" if reason == "checksum" else None)


def test_every_beginning_of_a_bundle_is_cut_and_every_flipped_byte_is_changed() -> None:
    whole = pack([SKILL, SCRIPT])
    digest = digest_of_files([SKILL, SCRIPT])
    assert verified_files(whole, digest) == unpack(whole)
    for length in range(len(whole)):
        assert kind_of(whole[:length], digest) == "cut"
    for place in range(len(whole)):
        flipped = whole[:place] + bytes((whole[place] ^ 1,)) + whole[place + 1 :]
        assert kind_of(flipped, digest) in ("changed", "cut")
    assert kind_of(whole + b"x", digest) == "changed"
    assert kind_of(pack([SKILL]), digest) == "changed"
    assert kind_of(b"vskill-bundle 1\n03\nabc", digest) == "changed"
    assert kind_of(None, digest) == "missing"


def kind_of(data: bytes | None, digest: str) -> str:
    with pytest.raises(ContentDamaged) as caught:
        verified_files(data, digest)
    assert (caught.value.text("digest"), caught.value.status) == (digest, 503)
    said = f"The stored files of {digest} are {caught.value.text('kind')}; they are not handed out until they are repaired."
    assert caught.value.message == said
    assert caught.value.details["host"] == "the repair of its stored files"
    return caught.value.text("kind")


def test_the_bundle_of_other_content_is_refused() -> None:
    other = digest_of_files([SKILL])
    with pytest.raises(StoreCorrupt, match="expected") as caught:
        unpack(pack([SKILL, SCRIPT]), other)
    assert caught.value.details["expected"] == other


def test_the_format_is_fixed_for_ever() -> None:
    """Blobs of today must be readable by every later release."""
    line = b"100644 2 " + hashlib.sha256(b"hi").hexdigest().encode() + b" 8:SKILL.md\n"
    assert pack([SkillFile("SKILL.md", "100644", b"hi")]) == b"vskill-bundle 1\n85\n" + line + b"hi"
