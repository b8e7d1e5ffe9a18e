"""Benchmarks: what the project claims about its speed, as ratios against peers and the raw engine in one run.

Absolute figures say more about a machine than about the code, so every claim compares two figures that were
measured minutes apart on the same disk. `python -m bench` runs them; `docs/benchmarks.md` is what a run wrote.
"""
