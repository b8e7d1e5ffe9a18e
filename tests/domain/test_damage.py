"""The record of damaged content keeps when it was found, and says what was seen last and who names it."""

from vskill_platform.domain.operation.damage import MOST_NAMES, Damage, DamageKind, add_names


def test_damage_that_is_seen_again_keeps_its_beginning_and_gains_names():
    first = Damage("ab", DamageKind.MISSING, 7, ("version:a", "version:b"))
    again = add_names(first, DamageKind.CUT, ("version:b", "sub:c"))
    assert again == Damage("ab", DamageKind.CUT, 7, ("version:a", "version:b", "sub:c"))


def test_a_damage_lists_so_many_names_and_no_more():
    names = tuple(f"sub:{number}" for number in range(MOST_NAMES + 3))
    damage = add_names(Damage("ab", DamageKind.CHANGED, 7, names[:1]), DamageKind.CHANGED, names)
    assert damage.named_by == names[:MOST_NAMES]
