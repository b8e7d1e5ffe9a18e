"""The simulator: the real store code, consumer, recovery and schedule on the memory engines, under a virtual clock
and a seeded scheduler, with faults at every call of a dependency and people who act at the worst moments.

`python -m simulator --seeds N` plays N histories and checks every invariant, at each commit and at the end; a
failing seed replays exactly. Read `world` first: it puts the parts together.
"""
