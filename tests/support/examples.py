"""How many examples a property is tried with: few in every run, many in `make test-long`."""

import os

#: How many times as many as usual.
TIMES = int(os.environ.get("TIMES", "1"))


def examples(usual: int) -> int:
    return usual * TIMES
