"""Benchmarks: what the project claims about its speed, as ratios against peers and the raw engine in one run.

Absolute figures say more about a machine than about the code, so every claim compares two figures that were
measured minutes apart on the same disk. `python -m bench` runs them; `docs/benchmarks.md` is what a run wrote.

Each serves a sentence that the project says elsewhere; one that no sentence needs goes.

- `queue` (with `queue_peers`), `counts`, `context`, `scanner` (with `skills`, `skill_scanner`): the README's figures.
- `path` (with `path_child`): sizing, what a repository adds to a job; the only one with git.
- `reads` (with `driver_reads`) and `engine_reads`: decision record 0002, how records are read on each engine.
- `door` (with `door_server`): decision record 0019, crowds.
- `backlog` (with `backlog_processes`): decision record 0017, a kill while thousands wait.
- `web` (with `web_store`): the marketplace is fast with hundreds of thousands of skills (US-002).
- `search` (with `search_texts`): decision record 0021, what a search takes as a registry grows.
- `scaling` and `postgres_scale` (with the other `postgres_` modules): sizing and query plans.
"""
