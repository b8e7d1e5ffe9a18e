"""Front matter is read as text, strictly where it is YAML and leniently where it is not. What is taken instead of what
was written has a note with a line and a fix; every refusal names the line of SKILL.md and the fix."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vskill_core.errors import InvalidManifest
from vskill_core.form import MEANINGS, SKIPPED_BY_SKILLS, NoteCode
from vskill_core.naming import is_plain_name
from vskill_scan.reading.manifest import DESCRIPTION_LENGTH, MAX_DEPTH, Manifest, read_manifest


def skill(*lines: str, body: str = "# Title\n") -> bytes:
    return "\n".join(["---", *lines, "---", body]).encode()


NAMED = ("name: pdf-tools", "description: Reads PDF files.")


def refused(data: bytes) -> InvalidManifest:
    with pytest.raises(InvalidManifest) as caught:
        read_manifest(data)
    return caught.value


PLAIN = Manifest("pdf-tools", "Reads PDF files.", declared_name="pdf-tools")


def codes(manifest: Manifest) -> list[str]:
    return [note.code.value for note in manifest.notes]


def test_name_and_description_are_enough():
    assert read_manifest(skill(*NAMED)) == PLAIN


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
    assert read_manifest(data) == PLAIN


def test_lines_of_the_body_are_not_read():
    assert read_manifest(skill(*NAMED, body="---\nname: !!python/object x\n---\n")).name == "pdf-tools"


@pytest.mark.parametrize(
    ("data", "line", "problem"),
    [
        (b"", 1, "SKILL.md is empty"),
        (b"\xef\xbb\xbf \r\n\t\n", 1, "SKILL.md is empty"),
        (b"---\nname: a\xff\n---\n", 2, "not UTF-8"),
        ("---\nname: a\n---\n".encode("utf-16"), 1, "not UTF-8"),
        (skill(*NAMED, "x: " + "a" * 70_000), 2, "more than 65536"),
    ],
)
def test_only_what_no_client_could_read_is_refused_with_its_line(data, line, problem):
    error = refused(data)
    assert problem in error.message
    assert error.message.startswith(f"SKILL.md line {line}: ")
    assert error.details["line"] == line
    assert error.details["fix"]


@pytest.mark.parametrize(
    ("lines", "line", "problem"),
    [
        (["- a"], 2, "not a list of fields"),
        (["just text"], 2, "not a list of fields"),
        (["name: a", "description: b: c"], 3, "not valid YAML"),
        (["name: a", "description: 'open"], 3, "not valid YAML"),
        (["name: a", "\tdescription: b"], 3, "not valid YAML"),
        (["name: a", "argument-hint: [title] [message]"], 3, "not valid YAML"),
        (["name: a", 'metadata: {"x": {"y": 1}'], 3, "not valid YAML"),
        (["name: a\0"], 2, "character that YAML forbids"),
        ([*NAMED, "name: other"], 4, "'name' is there twice"),
        ([*NAMED, "metadata:", "  a: 1", "  b: 2", "  a: 3"], 7, "'a' is there twice"),
        (["name: &n a", "description: x"], 2, "alias"),
        ([*NAMED, "x: *n"], 4, "alias"),
        ([*NAMED, "x: !!python/name:os.system"], 4, "tag"),
        ([*NAMED, "x: !local 1"], 4, "tag"),
        ([*NAMED, "? [a, b]", ": c"], 4, "field's name is not plain text"),
        (["name: a", "--- x"], 3, "goes on after its end"),
        (["name: [a]", "description: x"], 2, "'name' is not text"),
        ([*NAMED, f"x: {'[' * 20_000}{']' * 20_000}"], 4, "nests deeper"),
    ],
)
def test_what_is_not_plain_YAML_is_read_line_by_line_with_a_note(lines, line, problem):
    manifest = read_manifest(skill(*lines), "folder")
    note = manifest.notes[0]
    assert (note.code, note.field, note.line) == (NoteCode.FRONT_MATTER_NOT_YAML, "front matter", line)
    assert problem in note.sentence and note.fix
    written = next((one for one in lines if one.startswith("name:")), "")
    name = {"name: a": "a", "name: pdf-tools": "pdf-tools", "name: a\0": "a"}.get(written, "folder")
    assert manifest.name == name


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["description: Use it: always, e.g. a: b"], "Use it: always, e.g. a: b"),
        (["description: **Bold** words"], "**Bold** words"),
        (["description: @someone wrote `this`"], "@someone wrote `this`"),
        (["description: 50% of it"], "50% of it"),
        (['description: "quoted: yes" and more'], '"quoted: yes" and more'),
        (['description: "quoted" ', "bad: [x"], "quoted"),
        (["description: |", "  Two lines:", "\ttab", "bad: [x"], "Two lines: tab"),
        (["description: >-", "  Folded", "  text.", "bad: {x"], "Folded text."),
        (["description: first", "  goes on", "bad: 'x"], "first goes on"),
        (["description: *alias"], "*alias"),
        (["\tdescription: after a tab", "  version: 1"], "after a tab"),
        (["description: |", "  name: of a field", "bad: [x"], "name: of a field"),
        (["description: !tag text"], "!tag text"),
        (["description: a\x07b\x1b[31m"], "ab[31m"),
        (["description: one", "description: two"], "one"),
    ],
)
def test_a_description_that_is_not_YAML_is_taken_as_its_author_meant_it(written, read):
    assert read_manifest(skill("name: a", *written)).description == read


def test_all_known_fields_are_read_line_by_line_too():
    manifest = read_manifest(
        skill(
            "name: a",
            "description: b: c",
            "version: '2.1.0'",
            "license: MIT",
            "compatibility: needs git",
            "allowed-tools:",
            "  - Read",
            '  - "Bash(git:*)"',
            "metadata:",
            "  author: someone",
            "  category: 'data'",
            "other: x",
        )
    )
    assert (manifest.version, manifest.license, manifest.compatibility) == ("2.1.0", "MIT", "needs git")
    assert manifest.allowed_tools == ("Read", "Bash(git:*)")
    assert manifest.metadata == {"author": "someone", "category": "data"}
    assert read_manifest(skill("description: b: c", "allowed-tools: Read, Write")).allowed_tools == (
        "Read",
        "Write",
    )


def test_what_belongs_to_an_unknown_field_is_not_taken_for_a_known_one():
    manifest = read_manifest(skill("name: a", "bot:", "  description: its own", "version: 2", "bad: [x"))
    assert (codes(manifest)[1:], manifest.version) == (["description-missing"], "2")


def test_without_front_matter_the_folder_and_the_first_paragraph_stand_in():
    text = "# Tidy tables\n\n![badge](x.svg)\n\n```sh\ncurl x\n```\n\nTidies CSV\ntables.\n\nMore.\n"
    manifest = read_manifest(text.encode(), "Tidy_Tables")
    assert (manifest.name, manifest.description) == ("tidy-tables", "Tidies CSV tables.")
    assert manifest.declared_name is None
    (note,) = manifest.notes
    assert (note.code, note.line) == (NoteCode.FRONT_MATTER_MISSING, 1)
    assert "the folder's name and the first paragraph are used" in note.sentence


@pytest.mark.parametrize(
    ("body", "description"),
    [
        ("# Only a heading\n", "Only a heading"),
        ("> A quote.\n", "A quote."),
        ("- An item\n", "An item"),
        ("***\n<!-- hidden -->\n", "The skill x."),
        ("word " * 400, ("word " * 204).strip() + "…"),
        ("w" * 2000, "w" * 1023 + "…"),
    ],
)
def test_a_description_is_found_in_any_text(body, description):
    manifest = read_manifest(body.encode(), "x")
    assert manifest.description == description
    assert len(manifest.description) <= DESCRIPTION_LENGTH


def test_a_front_matter_without_an_end_is_read_up_to_the_first_empty_line():
    manifest = read_manifest(b"---\nname: a\ndescription: Does b.\n\n# Title\nversion: 9\n")
    assert (manifest.name, manifest.description, manifest.version) == ("a", "Does b.", None)
    assert codes(manifest) == ["front-matter-open"]


def test_empty_lines_above_the_front_matter_are_noted():
    manifest = read_manifest(b"\n\r\n" + skill(*NAMED))
    assert (manifest.name, codes(manifest)) == ("pdf-tools", ["front-matter-missing"])
    assert "empty lines above" in manifest.notes[0].sentence


def test_an_alias_bomb_is_never_built():
    bomb = [
        "a: &a [x, x, x, x]",
        *(f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]" for n in range(20)),
    ]
    manifest = read_manifest(skill(*NAMED, *bomb))
    assert (manifest.name, codes(manifest)) == ("pdf-tools", ["front-matter-not-yaml"])
    assert manifest.metadata == {}


@pytest.mark.parametrize(
    "line",
    ["a: " + "[" * 60_000, "{" * 60_000, "name: x\n" * 7_000, "-" * 60_000, "? " * 30_000, ": " * 30_000],
)
def test_a_hostile_front_matter_takes_no_longer_than_its_length(stopwatch, line):
    """Processor time, and far more of it than a linear reading takes, so that a busy machine does not matter."""
    began = stopwatch()
    assert read_manifest(skill(*NAMED, "bad: [x", line)).name == "pdf-tools"
    assert stopwatch() - began < 5


@pytest.mark.parametrize("depth", [MAX_DEPTH, 20_000])
def test_deep_nesting_is_not_parsed(depth):
    manifest = read_manifest(skill(*NAMED, f"x: {'[' * depth}{']' * depth}"))
    assert "nests deeper" in manifest.notes[0].sentence


def test_nesting_up_to_the_limit_is_plain():
    depth = MAX_DEPTH - 1
    assert read_manifest(skill(*NAMED, f"x: {'[' * depth}{']' * depth}")) == PLAIN


@pytest.mark.parametrize(
    "name", ["Pdf", "pdf_tools", "pdf tools", "-pdf", "pdf-", "pdf--tools", "a" * 65, "päd", "a/b", "日本"]
)
def test_a_name_outside_the_specification_gives_way_to_the_folder_with_a_note(name):
    manifest = read_manifest(skill(f"name: {name}", "description: x"), "My Folder")
    assert (manifest.name, manifest.declared_name) == ("my-folder", name)
    (note,) = manifest.notes
    assert (note.code, note.field, note.line) == (NoteCode.NAME_INVALID, "name", 2)
    assert "the folder's name is used" in note.sentence
    assert "1 to 64 of a-z, 0-9 and single hyphens" in note.fix
    suggested = note.fix.partition("'name: ")[2].partition("'")[0]
    assert is_plain_name(suggested)
    assert read_manifest(skill(f"name: {suggested}", "description: x")).notes == ()


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("My_Skill.v2", "my-skill-v2"),
        ("a" * 100, "a" * 64),
        ("a" * 63 + "-b", "a" * 63),
        ("--x--", "x"),
        ("日本", "skill-6b1ef8d2"),
    ],
)
def test_a_folder_is_made_a_valid_name_always_the_same_one(folder, name):
    made = read_manifest(skill("description: x"), folder).name
    assert is_plain_name(made) and made == read_manifest(b"text", folder).name
    assert made == name or (not folder.isascii() and made.startswith("skill-"))


@pytest.mark.parametrize("name", ["a", "a" * 64, "a-1-b", "123"])
def test_a_name_within_the_specification_is_accepted(name):
    manifest = read_manifest(skill(f"name: {name}", "description: x"), "elsewhere")
    assert (manifest.name, manifest.notes) == (name, ())


@pytest.mark.parametrize("field", ["name", "description"])
@pytest.mark.parametrize("value", [None, "", " ''", " '  '"])
def test_a_required_field_without_text_is_replaced_with_a_note_on_its_line(field, value):
    other = "description: x" if field == "name" else "name: a"
    lines = [other] if value is None else [other, f"{field}:{value}"]
    manifest = read_manifest(skill(*lines, body="# T\n\nThe text.\n"), "folder")
    (note,) = manifest.notes
    assert (note.code.value, note.field) == (f"{field}-missing", field)
    assert note.line == (1 if value is None else 3)
    taken = manifest.name if field == "name" else manifest.description
    assert taken == {"name": "folder", "description": "The text."}[field]


def test_a_description_has_at_most_1024_characters_and_the_rest_is_not_listed():
    assert read_manifest(skill("name: a", "description: " + "é" * 1024)).notes == ()
    manifest = read_manifest(skill("name: a", "description: " + "é" * 1025))
    assert manifest.description == "é" * 1023 + "…"
    (note,) = manifest.notes
    assert (note.code, note.line) == (NoteCode.DESCRIPTION_LONG, 3)
    assert "1025 characters" in note.sentence


@pytest.mark.parametrize("field", ["version", "license", "compatibility"])
def test_another_field_that_should_be_text_and_is_not_is_ignored_with_a_note(field):
    manifest = read_manifest(skill(*NAMED, f"{field}: [a]"))
    assert getattr(manifest, field) is None
    (note,) = manifest.notes
    assert (note.code, note.field, note.line) == (NoteCode.FIELD_NOT_TEXT, field, 4)


def test_every_code_has_a_meaning_and_every_note_says_whether_a_client_skips_the_skill():
    assert set(MEANINGS) == set(NoteCode)
    for data in (b"text", skill("name: A", "description: b: c"), skill(*NAMED, "version: [a]")):
        for note in read_manifest(data, "x").notes:
            assert ("`skills` does not install it" in note.sentence) == (note.code in SKIPPED_BY_SKILLS)


@given(st.binary(max_size=200), st.text(max_size=20))
def test_foreign_bytes_are_a_manifest_or_a_refusal_and_never_anything_else(data, folder):
    for candidate in (data, b"---\n" + data + b"\n---\n", b"---\nbad: [\n" + data + b"\n---\n"):
        with suppress(InvalidManifest):
            manifest = read_manifest(candidate, folder)
            assert is_plain_name(manifest.name)
            assert 0 < len(manifest.description) <= DESCRIPTION_LENGTH
            assert manifest == read_manifest(candidate, folder)
