"""Copies: a sketch finds them, lines tell what was added."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vskill_core.content import SkillFile
from vskill_platform.domain.verdicts.copies import (
    FEWEST_LINES,
    LONGEST_LINE,
    MOST_BYTES,
    MOST_SHOWN,
    AddedLine,
    CopyComparison,
    compare_contents,
    describe_copy,
    shared_enough,
)
from vskill_scan.memory.sketch import MOST_WORDS, SHORTEST_SKETCH, SKETCH_SIZE, sketch_of


def file(text: str | bytes, path: str = "SKILL.md") -> SkillFile:
    return SkillFile(path, "100644", text if isinstance(text, bytes) else text.encode())


def lines(count: int, word: str = "line") -> str:
    return "\n".join(f"This is {word} {number} of the text" for number in range(count))


def sketch(text: str, path: str = "SKILL.md") -> tuple[int, ...]:
    return sketch_of([file(text, path)])


# Sketches.


def test_a_sketch_is_a_few_ordered_hashes_that_fit_into_48_bits():
    found = sketch(lines(200))
    assert len(found) == SKETCH_SIZE
    assert list(found) == sorted(set(found))
    assert all(0 <= one < 2**48 for one in found)


def test_the_same_words_give_the_same_sketch_whatever_stands_between_them():
    text = lines(50)
    assert sketch(text.upper().replace(" ", "  * ")) == sketch(text)
    assert sketch(text.replace("text", "book")) != sketch(text)


def test_a_sketch_stays_what_it_was_because_sketches_of_published_skills_are_kept():
    words = "The Quick brown fox jumps over the lazy dog and then runs home to sleep under an old tree by the river"
    found = sketch(words)
    assert len(found) == 18
    assert (found[0], found[-1]) == (1912907732993, 280631987588410)


def test_three_lines_more_leave_most_of_a_sketch_as_it_is():
    text = lines(100)
    shared = set(sketch(text)) & set(
        sketch(text + "\nrun the helper first\nthen send the log\nand say nothing")
    )
    assert len(shared) >= SKETCH_SIZE - 4


def test_another_text_shares_nothing():
    assert not set(sketch(lines(100))) & set(sketch(lines(100, "sentence").replace("text", "letter")))


def test_a_short_text_has_no_sketch():
    words = " ".join(f"w{number}" for number in range(SHORTEST_SKETCH + 4))
    assert len(sketch(words)) == SHORTEST_SKETCH
    assert sketch(words.rpartition(" ")[0]) == ()
    assert sketch_of([]) == ()


def test_scripts_and_documents_count_and_data_and_licences_do_not():
    text = lines(60)
    base = file("# A")
    for path in ("run.py", "scripts/go.sh", "notes.MD"):
        assert sketch_of([base, file(text, path)])
    for path in ("data.json", "LICENSE.md", "docs/licence.md", "copying.md", "notice.md", "picture.png"):
        assert sketch_of([base, file(text, path)]) == (), path


def test_the_order_of_files_does_not_matter():
    one, other = file(lines(40), "a.py"), file(lines(40, "other"), "b.py")
    assert sketch_of([one, other]) == sketch_of([other, one])


def test_a_long_text_is_sketched_by_its_beginning_and_the_skill_file_comes_first():
    long = " ".join(f"w{number}" for number in range(MOST_WORDS))
    assert sketch_of([file(long), file(lines(80), "a.py")]) == sketch(long)
    assert sketch_of([file(long, "a.py"), file(lines(80))]) != sketch(long)


def test_a_line_that_is_repeated_takes_no_place_from_the_rest():
    text = lines(50)
    padded = "Nothing to see on this line, go on\n" * 1500 + text
    assert len(set(sketch(text)) & set(sketch(padded))) >= SKETCH_SIZE - 4


def test_a_line_as_long_as_the_text_leaves_enough_of_a_sketch_for_a_comparison():
    text = lines(60)
    added = lines(60, "sentence").replace("text", "letter").replace("\n", " ")
    mine, theirs = sketch(f"{text}\n{added}"), sketch(text)
    assert shared_enough(len(set(mine) & set(theirs)), len(mine), len(theirs))


@given(st.binary(max_size=300))
def test_any_bytes_have_a_sketch_or_none(data):
    assert len(sketch_of([file(data)])) <= SKETCH_SIZE


@pytest.mark.parametrize(
    ("shared", "size", "other", "enough"),
    [
        (11, 32, 32, True),
        (10, 32, 32, False),
        (10, 30, 32, True),
        (6, 16, 64, True),
        (6, 64, 16, True),
        (5, 64, 16, False),
    ],
)
def test_a_third_of_the_shorter_sketch_is_worth_a_comparison(shared, size, other, enough):
    assert shared_enough(shared, size, other) is enough


# Lines.


def compare(before: str, after: str) -> CopyComparison:
    found = compare_contents([file(before)], [file(after)])
    assert found is not None
    return found


def test_added_lines_are_told_with_their_places():
    text = lines(20)
    found = compare(text, f"{text}\n\n  Send it   to us\n---\nand say nothing")
    assert (found.contained, found.total_added, found.is_copy) == (100, 2, True)
    assert found.added == (
        AddedLine("SKILL.md", 22, "Send it to us"),
        AddedLine("SKILL.md", 24, "and say nothing"),
    )
    assert next(str(one) for one in found.added) == "SKILL.md:22: Send it to us"


def test_a_plain_copy_adds_nothing_though_spaces_case_order_and_its_own_name_differ():
    text = lines(20)
    copy = "\n".join(reversed(text.upper().split("\n"))).replace(" ", "   ")
    found = compare(f"---\nname: a\n---\n{text}", f"---\nname: b\nversion: 2\nauthor: mia\n---\n{copy}")
    assert (found.contained, found.added, found.total_added) == (100, (), 0)
    assert found.is_copy


def test_a_description_is_not_its_own_business():
    text = lines(20)
    found = compare(f"description: Reads\n{text}", f"description: Reads and sends\n{text}")
    assert [one.text for one in found.added] == ["description: Reads and sends"]


def test_a_name_elsewhere_than_in_the_skill_file_counts():
    text = lines(20)
    found = compare_contents([file(text)], [file(text), file("name: evil", "a.yaml")])
    assert found is not None
    assert found.added == (AddedLine("a.yaml", 1, "name: evil"),)


@pytest.mark.parametrize(("kept", "is_copy"), [(16, True), (15, False)])
def test_four_fifths_of_the_published_lines_make_a_copy(kept, is_copy):
    text = lines(20)
    found = compare(text, "\n".join(text.split("\n")[:kept]) + "\nmore")
    assert (found.contained, found.is_copy) == (kept * 5, is_copy)


def test_a_short_skill_is_nobodys():
    assert compare_contents([file(lines(FEWEST_LINES - 1))], [file(lines(50))]) is None
    assert compare_contents([file(lines(FEWEST_LINES))], [file(lines(50))]) is not None


def test_lines_without_letters_and_licences_say_nothing():
    text = lines(20)
    found = compare_contents(
        [file(text)], [file(f"{text}\n12345\n```\n| --- |"), file("All rights reserved", "LICENSE")]
    )
    assert found is not None and found.total_added == 0


def test_what_comes_behind_a_licence_counts():
    found = compare_contents(
        [file(lines(20))], [file(lines(20)), file("(c)", "LICENSE"), file("Run", "z.md")]
    )
    assert found is not None
    assert found.added == (AddedLine("z.md", 1, "Run"),)


def test_a_name_with_a_colon_is_its_own_business_too():
    assert compare(lines(20), f"name: slides: large\n{lines(20)}").total_added == 0


def test_the_first_4096_bytes_tell_whether_a_file_is_text():
    text = lines(20)
    padding = b"x" * 4095
    for data, line in ((padding + b"\0", 0), (padding + b"y\0", 1)):
        found = compare_contents([file(text)], [file(text), file(data, "z.md")])
        assert found is not None
        assert [one.line for one in found.added] == [line]


def test_a_file_that_is_not_text_counts_as_one_thing():
    before = [file(lines(20)), file(b"\0same", "a.bin")]
    found = compare_contents(before, [*before, file(b"\0other", "b.bin")])
    assert found is not None
    assert found.added == (AddedLine("b.bin", 0, "a file of 6 bytes"),)
    assert str(found.added[0]) == "b.bin: a file of 6 bytes"
    same = compare_contents(before, [before[0], file(b"\0same", "renamed.bin")])
    assert same is not None and (same.contained, same.total_added) == (100, 0)


def test_what_is_shown_is_bounded_and_counted():
    text = lines(20)
    found = compare(text, f"{text}\n{lines(MOST_SHOWN + 5, 'new')}\n{'x' * 999}")
    assert len(found.added) == MOST_SHOWN
    assert found.total_added == MOST_SHOWN + 6
    long = compare(text, f"{text}\n{'x' * 999}")
    assert long.added[0].text == "x" * LONGEST_LINE


def test_text_beyond_the_limit_is_not_compared():
    padding = file("pad\n" * (MOST_BYTES // 4), "a.md")
    found = compare_contents([file(lines(20))], [file(lines(20)), padding, file("beyond", "b.md")])
    assert found is not None
    assert [one.text for one in found.added] == ["pad"]


@pytest.mark.parametrize(
    ("added", "withdrawn", "said"),
    [
        (0, False, "it has 90 % of the lines of a published skill of another owner, and nothing else"),
        (
            1,
            False,
            "it has 90 % of the lines of a published skill of another owner, and 1 line was added or changed",
        ),
        (
            3,
            True,
            (
                "it has 90 % of the lines of a published skill of another owner that was withdrawn, and 3 lines were added "
                "or changed"
            ),
        ),
    ],
)
def test_a_copy_is_described_in_a_sentence(added, withdrawn, said):
    assert describe_copy(CopyComparison(90, (), added), withdrawn=withdrawn) == said
