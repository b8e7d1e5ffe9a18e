"""Names that people take for another one: a letter more, less, changed or swapped, or letters that look the same.

Every name that is so close to a given one is written down, and the memory and the registry's own index of names say
which of them somebody uses. That costs the same whatever the number of skills.
"""

#: What a short name is made of.
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789-"
#: What looks the same at a glance, beyond one letter.
_SAME_LOOK = (("rn", "m"), ("nn", "m"), ("vv", "w"), ("cl", "d"))
#: Shorter names are close to each other by chance: `pdf` and `pdb`. Only swaps of letters count there.
SHORTEST = 4
#: A longer name has more neighbours than are worth a look, and is not mistaken for one letter.
LONGEST = 40
#: From this many installs on a name is worth imitating.
MIN_INSTALLS = 20


def look_alikes(name: str) -> frozenset[str]:
    """Every other name that can be taken for this one; of a name that is too long, none."""
    if len(name) > LONGEST:
        return frozenset()
    places = range(len(name))
    swapped = {name[:at] + name[at + 1 : at + 2] + name[at] + name[at + 2 :] for at in places}
    if len(name) < SHORTEST:
        return frozenset(swapped - {name})
    shorter = {name[:at] + name[at + 1 :] for at in places}
    changed = {name[:at] + letter + name[at + 1 :] for at in places for letter in _LETTERS}
    longer = {name[:at] + letter + name[at:] for at in (*places, len(name)) for letter in _LETTERS}
    return frozenset((swapped | shorter | changed | longer | _same_look(name)) - {name})


def _same_look(name: str) -> set[str]:
    pairs = (pair for one, other in _SAME_LOOK for pair in ((one, other), (other, one)))
    return {name.replace(old, new) for old, new in pairs}
