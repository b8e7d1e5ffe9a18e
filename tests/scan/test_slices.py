"""Large code is parsed in parts, and what cannot be followed from part to part is parsed whole."""

from vskill_scan.code.slices import MOST_MENTIONS, MOST_NAMES, ROUNDS, blank_comments, slice_code

FILLER = b"".join(b"def f%d(a):\n    return a + %d\n\n" % (number, number) for number in range(3000))
READ, PASS_ON, SEND = b"first = read()", b"\nsecond = first[::-1]\n", b"\nsend(second)\n"


def code(read: bytes) -> tuple[bytes, list[int]]:
    source = read + b"\n" + FILLER + PASS_ON + FILLER + SEND
    return source, [source.index(READ), source.index(SEND) + 1]


def test_names_lead_to_the_parts_between_and_the_filler_is_blanked():
    source, seeds = code(READ)
    kept, size = slice_code(source, "python", seeds)
    assert len(kept) == len(source) and size < len(source) // 10
    assert all(part in kept for part in (READ, PASS_ON, SEND)) and FILLER not in kept


def test_more_names_than_are_followed_leave_nothing_out():
    names = b"; ".join(b"n%d=1" % number for number in range(MOST_NAMES // 2))
    source, seeds = code(READ + b"; " + names)
    more = source.replace(SEND, SEND[:-1] + b"; " + names.replace(b"n", b"m") + b"\n")
    assert slice_code(more, "python", seeds) == (more, len(more))


def test_names_that_lead_further_than_is_followed_leave_nothing_out():
    source, seeds = code(READ)
    steps = [b"\nn%d = n%d\n" % (number + 1, number) for number in range(ROUNDS + 2)]
    longer = source.replace(PASS_ON, b"\nn0 = first\n" + FILLER.join(steps)).replace(
        SEND, b"\nsend(n%d)\n" % len(steps)
    )
    assert slice_code(longer, "python", seeds[:1]) == (longer, len(longer))


def test_names_that_stand_everywhere_leave_nothing_out():
    source, seeds = code(READ)
    everywhere = source + b"first\n" * (MOST_MENTIONS + 1)
    assert slice_code(everywhere, "python", seeds[:1]) == (everywhere, len(everywhere))


def test_long_runs_of_comments_are_blanked_and_every_place_stays():
    run = b"# words\n" * 50
    source = run + b"a = 1\n" + b"# one\n" + run.replace(b"words", b"x") + b"b = 2\n"
    blank = blank_comments(source)
    assert len(blank) == len(source) and blank.count(b"\n") == source.count(b"\n")
    assert blank.split() == [b"a", b"=", b"1", b"b", b"=", b"2"]
