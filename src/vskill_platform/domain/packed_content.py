"""The one form in which a content is kept in the blob store: a header, the lines of its manifest, and the bytes of its
files, so that every byte can be verified when it is read."""

from collections.abc import Iterable, Sequence

from vskill_core.content import MODES, FileEntry, SkillFile, digest_of, manifest_lines, manifest_of
from vskill_core.errors import StoreCorrupt

_MAGIC = b"vskill-bundle 1\n"


def pack(files: Sequence[SkillFile]) -> bytes:
    """All files as one blob: a header, the manifest's lines, then the bytes in the same order."""
    by_path = {file.path: file.data for file in files}
    manifest = manifest_of(files)
    lines = manifest_lines(manifest)
    return b"".join([_MAGIC, b"%d\n" % len(lines), lines, *(by_path[entry.path] for entry in manifest)])


def unpack(data: bytes, expected_digest: str | None = None) -> tuple[SkillFile, ...]:
    """The files of a blob, every byte verified; `StoreCorrupt` if anything does not match."""
    lines, body = _split_bundle(data)
    manifest = _parse_lines(lines)
    if manifest_lines(manifest) != lines:
        raise _corrupt("its manifest is not in the one valid form")
    if expected_digest is not None and digest_of(manifest) != expected_digest:
        raise _corrupt("its digest is not the expected one", expected=expected_digest)
    size = sum(entry.size for entry in manifest)
    if (is_cut := size > len(body)) or size < len(body):
        raise _corrupt("its length does not fit its manifest", is_cut=is_cut)
    return tuple(_cut_files(manifest, body))


def _split_bundle(data: bytes) -> tuple[bytes, bytes]:
    if not data.startswith(_MAGIC):
        raise _corrupt("it does not begin as a bundle", is_cut=_MAGIC.startswith(data))
    size, newline, rest = data[len(_MAGIC) :].partition(b"\n")
    if not newline:
        raise _corrupt("it does not hold a whole manifest", is_cut=True)
    length = _number(size)
    if size != b"%d" % length or length > len(rest):
        raise _corrupt("it does not hold a whole manifest", is_cut=length > len(rest))
    return rest[:length], rest[length:]


def _parse_lines(lines: bytes) -> tuple[FileEntry, ...]:
    entries: dict[str, FileEntry] = {}
    while lines:
        entry, lines = _parse_line(lines)
        if entry.path in entries:
            raise _corrupt("a path occurs twice in its manifest")
        entries[entry.path] = entry
    return tuple(entries.values())


def _parse_line(lines: bytes) -> tuple[FileEntry, bytes]:
    head, _, rest = lines.partition(b":")
    fields = head.split(b" ")
    mode = next((mode for mode in MODES if mode.encode() == fields[0]), None)
    if mode is None or len(fields) != 4:
        raise _corrupt("a line of its manifest cannot be read")
    length = _number(fields[3])
    try:
        path, sha256 = rest[:length].decode(), fields[2].decode("ascii")
    except UnicodeDecodeError:
        raise _corrupt("a line of its manifest is not UTF-8") from None
    return FileEntry(path, mode, _number(fields[1]), sha256), rest[length + 1 :]


def _cut_files(manifest: tuple[FileEntry, ...], body: bytes) -> Iterable[SkillFile]:
    start = 0
    for entry in manifest:
        file = SkillFile(entry.path, entry.mode, body[start : start + entry.size])
        if manifest_of((file,)) != (entry,):
            raise _corrupt("a file's bytes do not match its checksum", path=entry.path)
        start += entry.size
        yield file


def _number(digits: bytes) -> int:
    if not digits.isdigit() or len(digits) > 15:
        raise _corrupt("a number in it cannot be read")
    return int(digits)


def _corrupt(reason: str, **details: object) -> StoreCorrupt:
    return StoreCorrupt(f"A stored bundle is damaged: {reason}.", reason=reason, **details)
