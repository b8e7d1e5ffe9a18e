"""The engine of hypothesis: inputs built from the words of each format, and made small when one fails."""

import time
from collections.abc import Callable

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fuzz.seeds import TOKENS, seeds

BATCH = 500


def strategy(target: str) -> st.SearchStrategy[bytes]:
    """Words, honest inputs and noise, joined."""
    words = st.sampled_from(TOKENS[target])
    noise = st.one_of(
        st.binary(max_size=12), st.text(max_size=12).map(lambda text: text.encode("utf-8", "replace"))
    )
    honest = st.sampled_from(seeds(target))
    loose = st.lists(st.one_of(words, noise), max_size=40).map(b"".join)
    return st.one_of(
        loose, st.tuples(honest, loose).map(b"".join), st.tuples(loose, honest, loose).map(b"".join)
    )


def run(check: Callable[[bytes], None], target: str, seconds: float, random_seed: int) -> None:
    """Batches until the time is over; the first failure is made small and raised."""
    until = time.monotonic() + seconds
    inputs = strategy(target)
    number = 0
    while time.monotonic() < until:
        number += 1

        @settings(
            max_examples=BATCH,
            deadline=None,
            database=None,
            derandomize=False,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        )
        @given(inputs)
        def promise(data: bytes) -> None:
            if time.monotonic() < until + 60:
                check(data)

        promise.hypothesis.inner_test._hypothesis_internal_use_seed = random_seed + number  # type: ignore[attr-defined]  # noqa: SLF001
        promise()
