"""Front matter is read strictly, as text; every refusal names the line of SKILL.md and the fix."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vskill_platform.domain.errors import InvalidManifest
from vskill_platform.intake.manifest import MAX_DEPTH, Manifest, read_manifest


def skill(*lines: str, body: str = "# Title\n") -> bytes:
    return "\n".join(["---", *lines, "---", body]).encode()


NAMED = ("name: pdf-tools", "description: Reads PDF files.")


def refused(data: bytes) -> InvalidManifest:
    with pytest.raises(InvalidManifest) as caught:
        read_manifest(data)
    return caught.value


def test_name_and_description_are_enough():
    assert read_manifest(skill(*NAMED)) == Manifest("pdf-tools", "Reads PDF files.")


def test_all_known_fields_are_read():
    manifest = read_manifest(
        skill(
            *NAMED,
            "version: 2.1.0",
            "license: Apache-2.0",
            "compatibility: needs git",
            "allowed-tools: Bash(git:*) Read",
            "metadata:",
            "  author: someone",
            "  tags: [a, b]",
            "something-else: [1, {two: 3}]",
        )
    )
    assert (manifest.version, manifest.license, manifest.compatibility) == (
        "2.1.0",
        "Apache-2.0",
        "needs git",
    )
    assert manifest.allowed_tools == ("Bash(git:*)", "Read")
    assert manifest.metadata == {"author": "someone"}


@pytest.mark.parametrize("written", ["1.10", "1.0", "007", "0x10", "1e3", "2024-01-01", "yes", "null", "~"])
def test_a_value_stays_the_text_that_was_written(written):
    assert read_manifest(skill(*NAMED, f"version: {written}")).version == written


def test_the_version_may_stand_in_the_metadata():
    assert read_manifest(skill(*NAMED, "metadata:", "  version: '1.2'")).version == "1.2"
    assert read_manifest(skill(*NAMED, "version: 2.0.0", "metadata:", "  version: '1.2'")).version == "2.0.0"


def test_allowed_tools_may_be_a_list():
    assert read_manifest(skill(*NAMED, "allowed-tools:", "  - Read", "  - Write")).allowed_tools == (
        "Read",
        "Write",
    )


def test_a_folded_description_is_one_text():
    manifest = read_manifest(skill("name: a", "description: >", "  Reads files", "  and writes them."))
    assert manifest.description == "Reads files and writes them."


def test_a_byte_order_mark_and_windows_line_ends_are_accepted():
    data = b"\xef\xbb\xbf" + skill(*NAMED).replace(b"\n", b"\r\n")
    assert read_manifest(data) == Manifest("pdf-tools", "Reads PDF files.")


def test_lines_of_the_body_are_not_read():
    assert read_manifest(skill(*NAMED, body="---\nname: !!python/object x\n---\n")).name == "pdf-tools"


@pytest.mark.parametrize(
    ("data", "line", "problem"),
    [
        (b"", 1, "no front matter"),
        (b"# Title\n", 1, "no front matter"),
        (b"---\nname: a\n", 1, "does not end"),
        (b"---\nname: a\xff\n---\n", 2, "not UTF-8"),
        (skill(), 2, "not a list of fields"),
        (skill("- a"), 2, "not a list of fields"),
        (skill("just text"), 2, "not a list of fields"),
        (skill("name: a", "description: b: c"), 3, "not valid YAML"),
        (skill("name: a", "description: 'open"), 4, "not valid YAML"),
        (skill("name: a\0"), 2, "character that YAML forbids"),
        (skill(*NAMED, "name: other"), 4, "'name' stands there twice"),
        (skill(*NAMED, "metadata:", "  a: 1", "  b: 2", "  a: 3"), 7, "'a' stands there twice"),
        (skill("name: &n a", "description: x"), 2, "alias"),
        (skill(*NAMED, "x: *n"), 4, "alias"),
        (skill(*NAMED, "x: !!python/name:os.system"), 4, "tag"),
        (skill(*NAMED, "x: !local 1"), 4, "tag"),
        (skill(*NAMED, "? [a, b]", ": c"), 4, "field's name is not plain text"),
        (skill("name: a", "--- ", "description: x"), 2, "no description"),
        (skill("name: a", "--- x"), 3, "goes on after its end"),
        (skill(*NAMED, "x: " + "a" * 70_000), 2, "more than 65536"),
    ],
)
def test_what_is_not_plain_front_matter_is_refused_with_its_line(data, line, problem):
    error = refused(data)
    assert problem in error.message
    assert error.message.startswith(f"SKILL.md line {line}: ")
    assert error.details["line"] == line
    assert error.details["fix"]


def test_an_alias_bomb_is_refused_before_it_is_built():
    bomb = [
        "a: &a [x, x, x, x]",
        *(f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]" for n in range(20)),
    ]
    assert "alias" in refused(skill(*NAMED, *bomb)).message


@pytest.mark.parametrize("depth", [MAX_DEPTH, 20_000])
def test_deep_nesting_is_refused(depth):
    assert "nests deeper" in refused(skill(*NAMED, f"x: {'[' * depth}{']' * depth}")).message


def test_nesting_up_to_the_limit_is_accepted():
    depth = MAX_DEPTH - 1
    assert read_manifest(skill(*NAMED, f"x: {'[' * depth}{']' * depth}")).name == "pdf-tools"


@pytest.mark.parametrize(
    "name", ["Pdf", "pdf_tools", "pdf tools", "-pdf", "pdf-", "pdf--tools", "a" * 65, "päd", "a/b"]
)
def test_a_name_outside_the_specification_is_refused(name):
    error = refused(skill(f"name: {name}", "description: x"))
    assert error.details["field"] == "name"
    assert "1 to 64 of a-z, 0-9 and single hyphens" in error.message


@pytest.mark.parametrize("name", ["a", "a" * 64, "a-1-b", "123"])
def test_a_name_within_the_specification_is_accepted(name):
    assert read_manifest(skill(f"name: {name}", "description: x")).name == name


@pytest.mark.parametrize("field", ["name", "description"])
@pytest.mark.parametrize("value", ["", " ''", " '  '"])
def test_a_required_field_without_text_is_refused_on_its_line(field, value):
    other = "description: x" if field == "name" else "name: a"
    error = refused(skill(other, f"{field}:{value}"))
    assert (error.details["field"], error.details["line"]) == (field, 3)


def test_a_description_has_at_most_1024_characters():
    assert len(read_manifest(skill("name: a", "description: " + "é" * 1024)).description) == 1024
    assert "1025 characters" in refused(skill("name: a", "description: " + "é" * 1025)).message


@pytest.mark.parametrize("field", ["name", "version", "license"])
def test_a_field_that_must_be_text_and_is_not_is_refused(field):
    lines = [line for line in NAMED if not line.startswith(field)]
    assert f"'{field}' is not text" in refused(skill(*lines, f"{field}: [a]")).message


@given(st.binary(max_size=200))
def test_foreign_bytes_are_a_manifest_or_a_refusal_and_never_anything_else(data):
    for candidate in (data, b"---\n" + data + b"\n---\n"):
        with suppress(InvalidManifest):
            assert read_manifest(candidate).name
