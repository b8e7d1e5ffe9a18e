"""Capability cards: one entry per thing, an order that depends on nothing else, limits that hide nothing, and what two
cards differ in."""

import random

import msgspec
import pytest

from vskill_core.capability import (
    MOST_OF_A_KIND,
    CapabilityContext,
    CapabilityKind,
    CapabilityUse,
    Lack,
    SkillCapability,
    describe_needs,
    make_card,
    new_capabilities,
)

CODE, INSTRUCTION, LINK, _ = CapabilityContext


def host(value, line=1, context=CODE, *, shell=False, file="run.sh"):
    return SkillCapability(CapabilityKind.HOST, value, file, line, context, shell)


def test_a_thing_stands_once_at_its_strongest_place():
    card = make_card([host("a.example", 3, LINK), host("a.example", 9), host("a.example", 5, INSTRUCTION)])
    assert card == (host("a.example", 9),)
    assert make_card([host("a.example", 9), host("a.example", 3)]) == (host("a.example", 9),)


def test_a_thing_that_two_files_have_stands_once():
    one, other = (SkillCapability(CapabilityKind.COMMAND, "git", file, 1) for file in ("a.sh", "b.sh"))
    assert make_card([one, other]) == (one,)


def test_hosts_in_a_shell_come_before_others_and_names_in_their_order():
    found = [
        host("c.example"),
        host("b.example", shell=True),
        host("a.example"),
        host("d.example", shell=True),
    ]
    card = make_card(found)
    assert [one.value for one in card] == ["b.example", "d.example", "a.example", "c.example"]


def test_a_place_is_a_file_with_its_line_or_a_whole_file():
    assert host("a.example", 3).place == "run.sh:3"
    assert host("a.example", 0).place == "run.sh"


def test_a_host_in_any_shell_command_counts_as_one_in_a_shell():
    card = make_card([host("a.example", 3), host("a.example", 9, INSTRUCTION, shell=True)])
    assert card == (host("a.example", 3, shell=True),)


def test_a_link_is_in_no_shell():
    card = make_card([host("a.example", 3, LINK, shell=True), host("a.example", 9)])
    assert card == (host("a.example", 9),)


def test_the_order_does_not_depend_on_the_order_in_which_things_were_found():
    found = [host(f"{number}.example", number, context) for number, context in enumerate(CapabilityContext)]
    found += [SkillCapability(kind, "x", "a.py", 1) for kind in CapabilityKind]
    card = make_card(found)
    for seed in range(20):
        mixed = found[:]
        random.Random(seed).shuffle(mixed)
        assert make_card(mixed) == card
    assert [one.kind for one in card] == sorted((one.kind for one in card), key=list(CapabilityKind).index)


def test_what_is_over_the_limit_is_counted_and_its_number_is_a_capability_of_its_own():
    many = [host(f"h{number:03}.example", shell=True) for number in range(MOST_OF_A_KIND + 5)]
    card = make_card(many)
    assert len(card) == MOST_OF_A_KIND + 1
    assert card[-1] == host("5 more", shell=True)
    rest = make_card([host(f"h{number:03}.example", number) for number in range(MOST_OF_A_KIND + 2)])[-1]
    assert rest == host("2 more", MOST_OF_A_KIND)
    more = make_card([*many, host("zzz.example", shell=True)])
    assert [one.value for one in new_capabilities(card, more)] == ["6 more"]
    assert new_capabilities(card, more)[0].shell


def test_what_is_over_the_limit_counts_as_in_a_shell_where_any_of_it_is():
    many = [host(f"h{number:03}.example") for number in range(MOST_OF_A_KIND + 1)]
    card = make_card([*many, host("zzz.example", 1, INSTRUCTION, shell=True)])
    assert card[-1] == host("2 more", shell=True)


def test_new_is_what_the_first_card_has_not():
    before, after = [host("a.example")], [host("a.example", 77), host("b.example")]
    assert new_capabilities(before, after) == (host("b.example"),)
    assert new_capabilities(after, before) == ()


def test_what_was_only_linked_to_is_new_once_it_is_acted_upon_and_not_the_other_way_round():
    linked, run = host("a.example", 2, LINK), host("a.example", 9)
    assert new_capabilities([linked], [run]) == (run,)
    assert new_capabilities([run], [linked]) == ()
    assert new_capabilities([linked], [linked]) == ()


def test_each_file_that_cannot_be_read_is_one_of_its_own():
    one, other = (SkillCapability(CapabilityKind.UNREAD, "PDF document", path) for path in ("a.pdf", "b.pdf"))
    assert make_card([one, other]) == (one, other)
    assert new_capabilities([one], [one, other]) == (other,)


@pytest.mark.parametrize(
    ("without", "told"),
    [
        (None, []),
        (tuple(Lack), ["no network found", "no scripts"]),
        ((), ["network", "scripts", "secrets"]),
        ((Lack.NETWORK, Lack.SECRETS, Lack.FILES), ["no network found", "scripts", "install step"]),
        ((Lack.SCRIPTS, Lack.SECRETS, Lack.INSTALLS), ["network", "no scripts", "files elsewhere"]),
    ],
)
def test_two_or_three_facts_tell_skills_apart_and_what_is_rare_is_told_where_it_is_there(without, told):
    found = describe_needs(without)
    assert [text for text, _ in found] == told
    assert all(is_lack is text.startswith("no ") for text, is_lack in found)


def test_what_a_thing_is_used_for_is_gathered_and_comes_first_so_that_no_limit_hides_it():
    many = [host(f"h{number:03}.example") for number in range(MOST_OF_A_KIND + 5)]
    uses = [
        msgspec.structs.replace(host("z.example", context=context), uses=(use,))
        for context, use in ((CODE, CapabilityUse.SENDS), (INSTRUCTION, CapabilityUse.RUNS))
    ]
    card = make_card([*many, *uses])
    assert (card[0].value, card[0].uses) == ("z.example", (CapabilityUse.RUNS, CapabilityUse.SENDS))


def test_another_use_of_the_same_thing_is_new():
    plain = host("a.example")
    sent = msgspec.structs.replace(plain, uses=(CapabilityUse.SENDS,))
    assert new_capabilities([plain], [sent]) == (sent,)
    assert new_capabilities([sent], [plain]) == ()
