"""Fuzzing of everything that reads foreign bytes: `make fuzz`, or `python -m fuzz --minutes 30`.

`targets` says what is called and what must hold afterwards. Three engines make the inputs: `mutation` (seeded, no
dependencies), `properties` (hypothesis) and `coverage` (atheris, where there is a build of it for this Python).
Each target runs in a child process that is watched from outside for crashes, hangs and memory. What is found is
kept in tests/fuzz/cases, and the tests replay it for ever.
"""
