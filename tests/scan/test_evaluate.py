"""How conditions are joined: what `all`, `any` and `none` mean within each unit, on texts in which letters are leaves."""

import msgspec
import pytest

from vskill_scan.model import ALL_ROLES, ANY_POLARITY, Hit, Layer, Piece, TextRole, Unit
from vskill_scan.rules.evaluate import places, possible
from vskill_scan.rules.ruleset import Condition, Leaf, RuleNode

#: Sections end with `#`, segments with `/`.
FIRST = b"a. b a\nc /\nd /\n# e /\n"
SECOND = b"a f /\n"


def layer(path: str, text: bytes) -> Layer:
    pieces, start, section = [], 0, 0
    for number, line in enumerate(text.split(b"/\n")):
        section += line.startswith(b"#")
        if line:
            end = start + len(line) + 2
            pieces.append(Piece(start, end, TextRole.FOLLOW, segment=number, section=section))
            start = end
    return Layer(path, text, pieces, flowing=text.replace(b"\n", b" "))


LAYERS = [layer("SKILL.md", FIRST), layer("other.md", SECOND)]


def leaf(letter: str) -> Leaf:
    return Leaf(ord(letter), Condition(re=letter), ALL_ROLES, ANY_POLARITY, ())


def find(wanted: Leaf) -> list[Hit]:
    """Every place of the leaf's letter in both texts."""
    return [
        Hit(number, offset, 1, piece.segment, piece.section)
        for number, each in enumerate(LAYERS)
        for offset, byte in enumerate(each.text)
        if byte == wanted.number
        for piece in [each.piece_at(offset)]
    ]


def node(within: Unit, *, all_of: str = "", any_of: str = "", none_of: str = "") -> RuleNode:
    groups = (tuple(leaf(letter) for letter in letters) for letters in (all_of, any_of, none_of))
    return RuleNode(within, Condition(), *groups)


def found(condition: RuleNode | Leaf) -> list[tuple[int, int]]:
    return [(hit.layer, hit.offset) for hit in places(condition, find, LAYERS)]


#: Offsets in FIRST: two `a`, of which the second shares its sentence and line with `b`.
A1, A2, B, C, D, E = (0, 0), (0, 5), (0, 3), (0, 7), (0, 11), (0, 17)
A3, F = (1, 0), (1, 2)


def test_a_leaf_holds_where_it_was_found():
    assert found(leaf("a")) == [A1, A2, A3]


@pytest.mark.parametrize(
    ("within", "other", "expected"),
    [
        (Unit.SENTENCE, "b", [A2]),
        (Unit.SENTENCE, "c", [A2]),
        (Unit.LINE, "b", [A1, A2]),
        (Unit.LINE, "c", []),
        (Unit.SEGMENT, "c", [A1, A2]),
        (Unit.SEGMENT, "d", []),
        (Unit.SECTION, "d", [A1, A2]),
        (Unit.SECTION, "e", []),
        (Unit.FILE, "e", [A1, A2]),
        (Unit.FILE, "f", [A3]),
    ],
)
def test_all_keeps_the_places_of_its_first_member_whose_unit_holds_every_member(within, other, expected):
    assert found(node(within, all_of="a" + other)) == expected


@pytest.mark.parametrize(
    ("within", "unwanted", "expected"),
    [
        (Unit.SENTENCE, "b", [A1, A3]),
        (Unit.LINE, "b", [A3]),
        (Unit.SEGMENT, "d", [A1, A2, A3]),
        (Unit.SECTION, "d", [A3]),
        (Unit.FILE, "f", [A1, A2]),
    ],
)
def test_none_takes_away_the_units_that_hold_one_of_its_members(within, unwanted, expected):
    assert found(node(within, all_of="a", none_of=unwanted)) == expected
    assert found(node(within, any_of="a", none_of=unwanted)) == expected


def test_a_segment_is_cut_into_sentences_once_however_many_hits_it_has():
    text = b"a b. " * 50
    known = Layer("SKILL.md", text, [Piece(0, len(text), TextRole.FOLLOW, segment=0)], flowing=text)

    def hits(wanted: Leaf) -> list[Hit]:
        return [Hit(0, at, 1, 0, 0) for at, byte in enumerate(text) if byte == wanted.number]

    assert len(places(node(Unit.SENTENCE, all_of="ab"), hits, [known])) == 50
    assert list(known.sentences) == [0] and len(known.sentences[0]) == 50


def test_none_forbids_each_of_its_members_alone():
    assert found(node(Unit.SENTENCE, all_of="a", none_of="bf")) == [A1]


def test_any_holds_wherever_one_of_its_members_does():
    assert found(node(Unit.LINE, any_of="bd")) == [B, D]
    assert found(node(Unit.LINE, any_of="zd")) == [D]
    assert found(node(Unit.LINE, any_of="zy")) == []


def test_all_and_any_are_joined_within_the_unit():
    assert found(node(Unit.SEGMENT, all_of="a", any_of="cf")) == [A1, A2, A3]
    assert found(node(Unit.SEGMENT, all_of="a", any_of="df")) == [A3]
    assert found(node(Unit.SEGMENT, all_of="a", any_of="zy")) == []


def test_of_a_member_that_is_nowhere_the_rest_is_not_looked_for():
    asked: list[int] = []

    def noting(wanted: Leaf) -> list[Hit]:
        asked.append(wanted.number)
        return find(wanted)

    assert places(node(Unit.FILE, all_of="az", any_of="b", none_of="c"), noting, LAYERS) == []
    assert asked == [ord("a"), ord("z")]
    asked.clear()
    assert places(node(Unit.LINE, all_of="ae", none_of="c"), noting, LAYERS) == []
    assert asked == [ord("a"), ord("e")]


def test_conditions_nest_and_keep_their_own_units():
    inner = node(Unit.LINE, all_of="ab")
    assert found(RuleNode(Unit.FILE, Condition(), all=(inner, leaf("e")))) == [A1, A2]
    assert found(RuleNode(Unit.FILE, Condition(), all=(inner, leaf("f")))) == []
    assert found(RuleNode(Unit.FILE, Condition(), all=(leaf("e"), inner))) == [E]
    assert found(RuleNode(Unit.FILE, Condition(), any=(inner, leaf("f")))) == [A1, A2, F]
    assert found(RuleNode(Unit.SEGMENT, Condition(), all=(leaf("c"),), none=(inner,))) == []


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (leaf("a"), True),
        (leaf("z"), False),
        (node(Unit.LINE, all_of="ab"), True),
        (node(Unit.LINE, all_of="az"), False),
        (node(Unit.LINE, any_of="za"), True),
        (node(Unit.LINE, any_of="zy"), False),
        (node(Unit.LINE, all_of="a", any_of="zy"), False),
        (node(Unit.LINE, all_of="z", any_of="a"), False),
        (node(Unit.LINE, all_of="a", any_of="zb"), True),
        (node(Unit.LINE, all_of="a", none_of="b"), True),
        (RuleNode(Unit.LINE, Condition(), all=(node(Unit.LINE, any_of="zy"), leaf("a"))), False),
        (
            RuleNode(
                Unit.LINE, Condition(), any=(node(Unit.LINE, all_of="az"), node(Unit.LINE, all_of="ab"))
            ),
            True,
        ),
    ],
)
def test_a_condition_is_possible_when_the_leaves_that_it_needs_occur_anywhere(condition, expected):
    seen = set(FIRST + SECOND)
    assert possible(condition, seen, later=False) is expected
    if not expected:
        assert found(condition) == []


def test_an_excuse_takes_away_only_what_can_be_excused():
    """`b` excuses, `f` forbids; the first `a` runs, so words around it do not excuse it."""

    def marked(wanted: Leaf) -> list[Hit]:
        return [
            msgspec.structs.replace(hit, excuses=wanted.number == ord("b"), excusable=hit.offset > 0)
            for hit in find(wanted)
        ]

    def left(none_of: str, within: Unit) -> list[tuple[int, int]]:
        hits = places(node(within, all_of="a", none_of=none_of), marked, LAYERS)
        return [(hit.layer, hit.offset) for hit in hits]

    assert left("b", Unit.LINE) == [A1, A3]
    assert left("c", Unit.SEGMENT) == [A3]
    assert left("bf", Unit.LINE) == [A1]
    assert left("z", Unit.LINE) == [A1, A2, A3]
