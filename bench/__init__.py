"""Benchmarks: what the project claims about its speed, as ratios against peers and the raw engine in one run.

Absolute figures say more about a machine than about the code, so every claim compares two figures that were
measured minutes apart on the same disk. `python -m bench` runs them; `docs/benchmarks.md` is what a run wrote.

Each serves a sentence that the project says elsewhere; one that no sentence needs goes.

- `queue` (with `queue_peers`): the queue beside others, and what becomes of a killed worker's job.
- `path` (with `path_child`): what a repository adds to a job; the only one with git, and with `--compared COMMIT`.
- `scale` (`scaling`): the guide to sizes, what a job costs with one and with several processes.
- `reads` (with `driver_reads`): decision record 0002, how records are read.
- `door` (with `door_server`): decision record 0019, crowds.
- `search`: decision record 0029, what a search takes as a registry grows.
- `scanner` (with `skills`, `skill_scanner`): the static scan beside another scanner.
"""
