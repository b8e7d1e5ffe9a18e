"""`make mutants`: changes the code in small ways and asks whether a test fails.

mutmut's operators say which changes (`mutations`), mypy rejects those that `make check` would reject, each of the
others runs the tests that call its function in a process of its own (`runs`), and what survives is held against
the list of survivors with their reasons (`verdict`). docs/adr/0008-mutants-in-forked-sessions.md says why.
"""
