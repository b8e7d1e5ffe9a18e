"""The simulator finds bugs: ten that registries of this kind have had are planted, one at a time, and each is found
within 2,000 seeds; the very seed that shows it is clean without it."""

import pytest

from simulator.history import History
from simulator.planted import Bug

pytestmark = pytest.mark.slow

MOST_SEEDS = 2_000
#: Where the search for a rare one begins, so that the test stays short: counted from 0, it is found at seed 752.
FIRST_SEED = {Bug.NO_NAMESPACE_ASSERTION: 740}

#: What the find must look like; a crash of the simulator itself would be no find.
SIGNS = {
    Bug.NO_VERSION_CHECK: (
        "history only grows",
        "only the holder of a claim works",
        "an ended run is kept when the next begins",
        "a submission begins at its beginning",
        "no foreign field is overwritten",
        "a claim's token is used once",
        "nothing is taken up before it is due",
    ),
    Bug.ACK_BEFORE_WRITE: ("everything accepted comes to its end",),
    Bug.RECOVERY_EXECUTES: ("only the holder of a claim works",),
    Bug.NO_BLOCKLIST_ASSERTION: ("nothing blocked goes live",),
    Bug.CLAIM_STOLEN: (
        "nothing is taken up before it is due",
        "the blocklist has been applied",
        "the last content that was submitted is judged",
    ),
    Bug.LEASE_BELIEVED: ("everything accepted comes to its end",),
    Bug.NO_NAMESPACE_ASSERTION: (
        "a record has its namespace's audience",
        "what is hidden carries its audience",
        "no read that begins after the commit sees what is hidden",
    ),
    Bug.DIRECTORY_BELIEVED: (
        "no read that begins after the commit sees what is hidden",
        "everything accepted comes to its end",
        "what is delivered has arrived",
    ),
    Bug.WAIT_SHORTENED: ("the first sight of a content never moves", "no wait ends early"),
    Bug.LENGTH_BELIEVED: ("damage is mended from its source", "everything accepted comes to its end"),
}


@pytest.mark.parametrize("bug", list(Bug), ids=lambda bug: bug.name.lower())
def test_a_planted_bug_is_found_and_the_same_seed_is_clean_without_it(bug):
    first = FIRST_SEED.get(bug, 0)
    for seed in range(first, first + MOST_SEEDS):
        found = History(seed, bug).run()
        if found.broken is not None:
            break
    else:
        pytest.fail(f"not found in {MOST_SEEDS} seeds: {bug}")
    assert found.broken.startswith(SIGNS[bug]), found.broken
    assert any("BROKEN" in line for line in found.trace)
    assert History(seed).run().broken is None
