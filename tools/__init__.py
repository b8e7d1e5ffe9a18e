"""The project's own checks: what neither ruff nor mypy nor import-linter can see.

`python -m tools` (part of `make check`) runs all of them over the files that git knows or would add. Each
check is a function from text to problems, so that tests/docs can show what it catches and what it lets pass.
"""
