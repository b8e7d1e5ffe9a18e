"""A secret that somebody else keeps, such as a secret manager: a setting names its file, or holds the secret itself."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from vskill_core.errors import InvalidSettings, StoreUnavailable

T = TypeVar("T")

Stamp = tuple[int, int, int]
#: Bytes; a private key of Ed25519 as PEM has 119.
_LONGEST = 4096


class GivenSecret(Generic[T]):
    """What a setting gives. Its file is read anew when it was replaced, and may be read by its owner and group only."""

    def __init__(
        self,
        variable: str,
        what: str,
        given: str,
        *,
        from_file: Callable[[Path, bytes], T],
        from_text: Callable[[str], T],
    ) -> None:
        self._variable = variable
        self._what = what
        self._given = given
        self._from_file = from_file
        self._from_text = from_text
        self._loaded: tuple[Stamp, T] | None = None

    def read(self) -> T:
        """Blocks; raises a typed error that names the file or the variable, and never the secret."""
        path = Path(self._given)
        try:
            stamp = stamp_of(path) if path.is_absolute() else (0, 0, 0)
            if self._loaded is None or self._loaded[0] != stamp:
                self._loaded = stamp, self._read(path)
        except OSError as error:
            message = f"{self._variable} names {path}, which cannot be read: {error.strerror or error}."
            raise StoreUnavailable(message, file=str(path)) from error
        return self._loaded[1]

    def _read(self, path: Path) -> T:
        if not path.is_absolute():
            return self._from_text(self._given)
        fix = f"give it to this process's group at most, as chmod o= {path} does"
        return self._from_file(path, read_secret_file(path, self._what, 0o007, fix))


def stamp_of(path: Path) -> Stamp:
    """Another one when the file was replaced."""
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


def read_secret_file(path: Path, what: str, forbidden: int, fix: str) -> bytes:
    """What the file holds; InvalidSettings if its mode lets others read it."""
    with path.open("rb") as file:
        if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & forbidden:
            raise InvalidSettings(f"The {what} {path} can be read by others: {fix}.", fix=fix)
        return file.read(_LONGEST)
