"""Stylesheets, scripts, icons and the typeface, read once, when the module is. Pages ask for their addresses here;
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
#: Media types by extension; other files in the folder are not served.
MEDIA = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
#: How a stylesheet names another static file: `url("static:NAME")`. It is sent with that file's address.
NAMED_BY_STYLES = "static:"


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
    texts = {name: path.read_bytes() for name, path in found.items()}
    others = {name: _file(name, data) for name, data in texts.items() if not name.endswith(".css")}
    styles = {
        name: _file(name, _with_addresses(data, others)) for name, data in texts.items() if name not in others
    }
    return MappingProxyType({**others, **styles})


def _with_addresses(style: bytes, others: Mapping[str, StaticFile]) -> bytes:
    text = style.decode()
    for name, file in others.items():
        text = text.replace(f'url("{NAMED_BY_STYLES}{name}")', f'url("{file.address}")')
    return text.encode()


def _file(name: str, data: bytes) -> StaticFile:
    digest = hashlib.sha256(data).hexdigest()[:12]
    return StaticFile(name, digest, MEDIA[Path(name).suffix], data, gzip.compress(data, mtime=0))


FILES = _read(FOLDER)


def static_address(name: str) -> str:
    """Where a page finds a file; KeyError for a name that does not exist, which a test of the page meets."""
    return FILES[name].address
