"""What every check yields: a place and a sentence that says what is wrong and what to do."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Problem:
    """One finding of a check, printed as `path:line: message`."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"
