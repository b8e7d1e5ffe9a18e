"""Reads the `#:` lines of a class, so that a test can hold them against the documents."""

import inspect


def documented_names(kind: type) -> dict[str, str]:
    """Each attribute that has a `#:` line, with its text; continued lines are joined."""
    found: dict[str, str] = {}
    pending: list[str] = []
    for line in map(str.strip, inspect.getsource(kind).splitlines()):
        if line.startswith("#:"):
            pending.append(line.removeprefix("#:").strip())
        elif pending:
            name = line.removeprefix("self.").split(":")[0].split(" =")[0].strip()
            found[name] = " ".join(pending)
            pending = []
    return found
