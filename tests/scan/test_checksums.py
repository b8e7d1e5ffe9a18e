"""Tokens with a checksum of their own are secrets only if it fits."""

import pytest

from vskill_scan.rules.checksums import github_checksum

# Spelt so that nobody takes this file for a leak.
FITTING = "gh\x70_zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17"


def test_the_checksum_of_a_published_example_fits():
    assert github_checksum(FITTING.encode())


@pytest.mark.parametrize("place", [4, 20, 33, 39])
def test_one_other_character_does_not(place):
    other = "a" if FITTING[place] != "a" else "b"
    assert not github_checksum((FITTING[:place] + other + FITTING[place + 1 :]).encode())
