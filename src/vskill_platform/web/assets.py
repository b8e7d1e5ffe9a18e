"""Stylesheets, scripts and icons, read once, when the module is. Pages ask for their addresses here;
`static_files` serves them.

Every address carries a hash of the content, so a browser may keep what it got for ever, and a new release is
seen at once.
"""

import gzip
import hashlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

FOLDER = Path(__file__).parent / "static"
#: What is served, by the end of its name; anything else in the folder is for those who read the source.
MEDIA = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


class StaticFile(msgspec.Struct, frozen=True):
    """One file, ready to be sent."""

    name: str
    digest: str
    media: str
    data: bytes
    #: The same, compressed.
    packed: bytes

    @property
    def address(self) -> str:
        return f"/static/{self.digest}/{self.name}"


def _read(folder: Path) -> Mapping[str, StaticFile]:
    found = {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix in MEDIA
    }
    return MappingProxyType({name: _file(name, path) for name, path in found.items()})


def _file(name: str, path: Path) -> StaticFile:
    data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()[:12]
    return StaticFile(name, digest, MEDIA[path.suffix], data, gzip.compress(data, mtime=0))


FILES = _read(FOLDER)


def static_address(name: str) -> str:
    """Where a page finds a file; KeyError for a name that does not exist, which a test of the page meets."""
    return FILES[name].address
