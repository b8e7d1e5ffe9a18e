"""Archives: what a person packs is read, and everything else is refused with the member's name and a fix."""

import contextlib
import gzip
import io
import random
import tarfile
import tracemalloc
import zipfile
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.git_server import skill_md
from vskill_core.archive_reading import MOST_RATIO, RATIO_FROM_BYTES, read_archive
from vskill_core.content import ContentLimits, SkillFile
from vskill_core.errors import InvalidInput, LimitExceeded, NoSkillFound, PlatformError

SKILL = skill_md("demo")


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members:
            archive.writestr(name, data, compress_type=method)
    return out.getvalue()


def info(name: str, mode: int) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name)
    member.create_system, member.external_attr = 3, mode << 16
    return member


def tarred(*members: tuple[tarfile.TarInfo | str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for given_, data in members:
            member = tarfile.TarInfo(given_) if isinstance(given_, str) else given_
            if member.isreg():
                member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def header(name: bytes, size: int = 0, **fields: bytes) -> bytes:
    """The first block of a member of a tar, written by hand: `fields` replaces what stands at a place."""
    places = {"mode": 100, "size": 124, "kind": 156, "magic": 257, "prefix": 345, "padding": 500}
    block = bytearray(512)
    standard = {"mode": b"0000644", "size": b"%011o" % size, "kind": b"0", "magic": b"ustar\x0000"}
    for place, value in (standard | fields).items():
        block[places[place] : places[place] + len(value)] = value
    block[: len(name)] = name
    return signed(block)


def signed(block: bytearray) -> bytes:
    """A header with the checksum that fits it."""
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def blocks(name: str, data: bytes, **fields: bytes) -> bytes:
    """A member of a tar, padded; without the blocks that end an archive."""
    return header(name.encode(), len(data), **fields) + data.ljust(-(-len(data) // 512) * 512, b"\0")


def tar_member(name: str, **fields: object) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(member, field, value)
    return member


PACKED = {
    "zip": zipped(("SKILL.md", SKILL), ("scripts/", b""), (info("scripts/run.sh", 0o100755), b"echo\n")),
    "zip in a folder": zipped(
        ("demo/SKILL.md", SKILL),
        (info("demo/scripts/run.sh", 0o100755), b"echo\n"),
        ("__MACOSX/demo/._x", b"x"),
    ),
    "tar": tarred(("SKILL.md", SKILL), (tar_member("scripts/run.sh", mode=0o755), b"echo\n")),
    "gnu tar in a folder": tarred(
        (tar_member("./demo", type=tarfile.DIRTYPE), b""),
        ("./demo/SKILL.md", SKILL),
        (tar_member("./demo/scripts/run.sh", mode=0o755), b"echo\n"),
        form=tarfile.GNU_FORMAT,
    ),
}
PACKED["tar.gz"] = gzip.compress(PACKED["tar"])


@pytest.mark.parametrize("kind", PACKED)
def test_every_kind_gives_the_same_files(kind):
    assert read_archive(PACKED[kind]) == (
        SkillFile("SKILL.md", "100644", SKILL),
        SkillFile("scripts/run.sh", "100755", b"echo\n"),
    )


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_a_long_name_is_read_in_every_format_of_tar(form):
    name = f"{'d' * 90}/{'e' * 90}/f.txt"
    files = read_archive(tarred(("SKILL.md", SKILL), (name, b"x"), form=form))
    assert [file.path for file in files] == ["SKILL.md", name]


def test_a_name_outside_ascii_is_read():
    for data in (
        zipped(("SKILL.md", SKILL), ("daß/ü.txt", b"x")),
        tarred(("SKILL.md", SKILL), ("daß/ü.txt", b"x")),
    ):
        assert read_archive(data)[1].path == "daß/ü.txt"


SPARSE = tar_member("x", type=tarfile.GNUTYPE_SPARSE)
REFUSED = {
    "zip: link": (
        zipped(("SKILL.md", SKILL), (info("etc", 0o120777), b"/etc/passwd")),
        "'etc' is a symbolic link",
    ),
    "zip: device": (zipped(("SKILL.md", SKILL), (info("null", 0o020666), b"")), "'null' is not a plain file"),
    "zip: parent": (zipped(("SKILL.md", SKILL), ("../up.txt", b"x")), "'../up.txt' is not accepted"),
    "zip: absolute": (zipped(("SKILL.md", SKILL), ("/etc/x", b"x")), "'/etc/x' is not accepted"),
    "zip: drive": (zipped(("SKILL.md", SKILL), ("C:/x", b"x")), "'C:/x' is not accepted"),
    "zip: backslash": (zipped(("SKILL.md", SKILL), ("a\\b", b"x")), "is not accepted"),
    "zip: newline": (zipped(("SKILL.md", SKILL), ("a\nb", b"x")), "is not accepted"),
    "zip: case": (zipped(("SKILL.md", SKILL), ("a.md", b"x"), ("A.md", b"y")), "'A.md' is not accepted"),
    "zip: file and folder": (zipped(("SKILL.md", SKILL), ("a", b"x"), ("a/b", b"y")), "is not accepted"),
    "zip: repository": (zipped(("SKILL.md", SKILL), (".GIT/hooks/x", b"y")), "leave '.GIT' out"),
    "zip: method": (zipped(("SKILL.md", SKILL), method=zipfile.ZIP_LZMA), "unsupported compression method"),
    "tar: link": (
        tarred(("SKILL.md", SKILL), (tar_member("out", type=tarfile.SYMTYPE, linkname="/etc"), b"")),
        "'out' is a symbolic link",
    ),
    "tar: hard link": (
        tarred(("SKILL.md", SKILL), (tar_member("out", type=tarfile.LNKTYPE, linkname="SKILL.md"), b"")),
        "'out' is a hard link",
    ),
    "tar: device": (
        tarred(("SKILL.md", SKILL), (tar_member("null", type=tarfile.CHRTYPE), b"")),
        "is a device",
    ),
    "tar: pipe": (
        tarred(("SKILL.md", SKILL), (tar_member("p", type=tarfile.FIFOTYPE), b"")),
        "is a named pipe",
    ),
    "tar: sparse": (tarred(("SKILL.md", SKILL), (SPARSE, b""), form=tarfile.GNU_FORMAT), "is a sparse file"),
    "tar: parent": (tarred(("SKILL.md", SKILL), ("a/../../up", b"x")), "is not accepted"),
    "tar: absolute": (tarred(("SKILL.md", SKILL), ("/etc/x", b"x")), "is not accepted"),
    "tar: twice": (tarred(("SKILL.md", SKILL), ("SKILL.md", b"other")), "'SKILL.md' is not accepted"),
    "tar: not text": (
        tarred(("SKILL.md", SKILL), ("a\udcff", b"x"), form=tarfile.GNU_FORMAT),
        "is not accepted",
    ),
    "tar: unknown": (tarred(("SKILL.md", SKILL), (tar_member("p", type=b"Z"), b"")), "of an unknown kind"),
    "zip: link outside ASCII": (
        zipped(("SKILL.md", SKILL), (info("ü" * 200, 0o120777), b"/etc")),
        "The member " + repr(r"\xfc" * 120) + " is a symbolic link",
    ),
    "not an archive": (
        b"hello",
        "The file is not a supported archive. pack it as zip, tar or tar.gz",
    ),
    "nothing": (b"", "The file is not a supported archive. pack it as zip, tar or tar.gz"),
    "zip cut off": (zipped(("SKILL.md", SKILL))[:-30], "damaged"),
    "tar cut off": (tarred(("SKILL.md", SKILL))[:540], "damaged"),
    "gzip cut off": (gzip.compress(tarred(("SKILL.md", SKILL)))[:-20], "damaged"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_names_the_member_and_the_fix(case):
    data, words = REFUSED[case]
    with pytest.raises(InvalidInput) as caught:
        read_archive(data)
    assert words in f"{caught.value} {caught.value.fix}"
    assert caught.value.fix
    assert caught.value.field in {"archive", "path"}


def test_a_member_whose_name_ends_at_a_nul_is_refused():
    data = zipped(("SKILL.md", SKILL), ("runXsh", b"x")).replace(b"runXsh", b"run\0sh")
    with pytest.raises(InvalidInput, match="NUL"):
        read_archive(data)


def test_an_encrypted_member_is_refused():
    data = bytearray(zipped(("SKILL.md", SKILL)))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    with pytest.raises(InvalidInput, match="encrypted"):
        read_archive(bytes(data))


def test_a_member_that_is_larger_than_it_says_is_refused():
    data = zipped(("SKILL.md", SKILL + b"x" * 1000))
    size = (len(SKILL) + 1000).to_bytes(4, "little")
    with pytest.raises(InvalidInput):
        read_archive(data.replace(size, (10).to_bytes(4, "little")))


@pytest.mark.parametrize("said", [0, 1036, 1038])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_member_of_another_size_than_the_archive_says_is_refused(said, method):
    """Less, more, or nothing at all: the size was declared before a byte was inflated, and limits counted on it."""
    data = zipped(("SKILL.md", SKILL), ("notes.md", b"x" * 1037), method=method)
    size = (1037).to_bytes(4, "little")
    assert data.count(size) >= 2
    sizes = {"SKILL.md": len(SKILL), "notes.md": 1037}
    assert {file.path: len(file.data) for file in read_archive(data)} == sizes
    with pytest.raises(InvalidInput, match=r"a different size|damaged"):
        read_archive(data.replace(size, said.to_bytes(4, "little")))


def test_the_refusal_of_a_member_that_is_smaller_than_it_says_names_it():
    data = zipped(("SKILL.md", SKILL), ("notes.md", b"x" * 1037))
    longer = data.replace((1037).to_bytes(4, "little"), (1038).to_bytes(4, "little"))
    with pytest.raises(InvalidInput, match=r"'notes\.md' has a different size than the archive says"):
        read_archive(longer)


def test_an_archive_without_a_skill_is_refused():
    with pytest.raises(NoSkillFound, match=r"no SKILL\.md at the root of the archive"):
        read_archive(zipped(("README.md", b"x")))
    with pytest.raises(NoSkillFound):
        read_archive(zipped(("one/SKILL.md", SKILL), ("two/SKILL.md", SKILL)))


BOMBS = {
    "zip": zipped(("SKILL.md", SKILL), ("zeros", bytes(9_000_000))),
    "tar.gz": gzip.compress(tarred(("SKILL.md", SKILL), ("zeros", bytes(9_000_000)))),
    "gzip alone": gzip.compress(bytes(200_000_000), 1),
}


@pytest.mark.parametrize("case", BOMBS)
def test_a_bomb_is_refused_before_it_fills_the_memory(case):
    assert len(BOMBS[case]) < 1_000_000
    tracemalloc.start()
    try:
        with pytest.raises((InvalidInput, LimitExceeded), match=r"times larger|more than"):
            read_archive(BOMBS[case])
        assert tracemalloc.get_traced_memory()[1] < 80_000_000
    finally:
        tracemalloc.stop()


NOISE = random.Random(1).randbytes(RATIO_FROM_BYTES + 1)


def test_what_packs_well_is_read_up_to_a_size_and_what_packs_badly_at_any():
    """A bomb is large and packs well; either alone is an ordinary file."""
    for data in (bytes(RATIO_FROM_BYTES), NOISE):
        assert read_archive(zipped(("SKILL.md", SKILL), ("data", data)))[1].data == data
    # A tar of exactly that size, headers and all.
    room = RATIO_FROM_BYTES - len(blocks("SKILL.md", SKILL)) - 512
    for data in (bytes(room), NOISE):
        plain = blocks("SKILL.md", SKILL) + blocks("data", data)
        assert read_archive(gzip.compress(plain))[1].data == data


@pytest.mark.parametrize(("beyond", "words"), [(0, "a different size"), (1, "times larger")])
def test_the_ratio_of_a_zip_is_exact(beyond, words):
    data = zipped(("SKILL.md", SKILL), ("data", NOISE[:9000]))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        packed = archive.getinfo("data").compress_size
    said = (MOST_RATIO * packed + beyond).to_bytes(4, "little")
    with pytest.raises(InvalidInput, match=words):
        read_archive(data.replace((9000).to_bytes(4, "little"), said))


def test_the_ratio_of_a_gzip_is_exact():
    plain = (blocks("SKILL.md", SKILL) + blocks("data", bytes(1_048_576))).ljust(MOST_RATIO * 5504, b"\0")
    packed = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = packed.compress(plain) + packed.flush()
    tail = zlib.crc32(plain).to_bytes(4, "little") + len(plain).to_bytes(4, "little")

    def of_length(length: int) -> bytes:
        """A gzip whose file name makes it this long."""
        head = b"\x1f\x8b\x08\x08" + bytes(6)
        name = b"n" * (length - len(head) - 1 - len(body) - len(tail))
        return head + name + b"\0" + body + tail

    assert len(of_length(5504)) == 5504
    assert len(read_archive(of_length(5504))) == 2
    with pytest.raises(InvalidInput, match="times larger"):
        read_archive(of_length(5503))


LIMITS = ContentLimits(files=3, bytes_total=5000, bytes_file=2000, depth=4)
#: SKILL.md with 1000 bytes.
THOUSAND = SKILL.ljust(1000)
#: What is over a limit by one; what is just within it; and the limit that is named.
OVER = {
    "files": ([(f"f{n}", b"") for n in range(3)], [(f"f{n}", b"") for n in range(2)], "files"),
    "one file": ([("f", NOISE[:2001])], [("f", NOISE[:2000])], "bytes"),
    "depth": ([("a/b/c/d/e", b"")], [("a/b/c/d", b"")], "depth"),
    "members": ([(f"d{n}/", b"") for n in range(12)], [(f"d{n}/", b"") for n in range(11)], "members"),
}


def packed(kind: str, *members: tuple[str, bytes]) -> bytes:
    if kind == "zip":
        return zipped(*members)
    folders = ((tar_member(n, type=tarfile.DIRTYPE) if n.endswith("/") else n, d) for n, d in members)
    return gzip.compress(tarred(*folders))


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
@pytest.mark.parametrize("case", OVER)
def test_every_limit_is_exact_in_every_kind(kind, case):
    over, within, limit = OVER[case]
    assert read_archive(packed(kind, ("SKILL.md", THOUSAND), *within), LIMITS)
    with pytest.raises(LimitExceeded) as caught:
        read_archive(packed(kind, ("SKILL.md", THOUSAND), *over), LIMITS)
    details = caught.value.details
    assert details["limit"] == limit
    assert str(details["allowed"]) in str(caught.value)


def test_limits_are_checked_before_anything_is_inflated():
    """The refusal speaks of the archive or the member, not of the skill, and says what to do."""
    for case in ("files", "one file", "members"):
        for kind in ("zip", "tar.gz"):
            with pytest.raises(LimitExceeded, match=r"^The (archive|member 'f') has more than \d+") as caught:
                read_archive(packed(kind, ("SKILL.md", THOUSAND), *OVER[case][0]), LIMITS)
            assert caught.value.details["fix"]
    files = [("SKILL.md", THOUSAND), ("f", NOISE[:2000]), ("g", bytes(2000))]
    for kind in ("zip", "tar.gz"):
        assert read_archive(packed(kind, *files), LIMITS)
        with pytest.raises(LimitExceeded, match=r"^What the archive holds has more than 4999 bytes"):
            read_archive(packed(kind, *files), ContentLimits(bytes_total=4999))


def test_the_archive_itself_may_be_as_large_as_all_files_together():
    data = PACKED["tar"]
    assert read_archive(data, ContentLimits(bytes_total=len(data)))
    with pytest.raises(LimitExceeded, match=r"^The archive has more than"):
        read_archive(data, ContentLimits(bytes_total=len(data) - 1))


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_depth_and_length_of_a_path_count_without_the_folder_around_everything(kind):
    limits = ContentLimits(depth=3, path_length=30)
    around = "a-folder-with-a-long-name-around-it"
    inside = [("SKILL.md", SKILL), ("a/b/c", b""), (f"d/{'e' * 28}", b"")]
    files = read_archive(packed(kind, *((f"{around}/{name}", data) for name, data in inside)), limits)
    assert [file.path for file in files] == ["SKILL.md", "a/b/c", f"d/{'e' * 28}"]
    deepest = "/".join("abcdefghijklmnop")
    assert read_archive(packed(kind, ("in/SKILL.md", SKILL), (f"in/{deepest}", b"")))[1].path == deepest
    for path in ("a/b/c/d", "d/" + "e" * 29):
        with pytest.raises(LimitExceeded):
            read_archive(packed(kind, ("SKILL.md", SKILL), (path, b"")), limits)


def test_a_tar_may_inflate_to_what_its_limits_and_its_own_blocks_can_need():
    """Three files of 5000 bytes in all, twelve members, and twenty blocks for what surrounds them: twice a block each."""
    most = 5000 + (12 + 20) * 2 * 512
    plain = blocks("SKILL.md", SKILL)
    assert read_archive(gzip.compress(plain.ljust(most - 1, b"\0")), LIMITS)
    with pytest.raises(LimitExceeded, match="What the archive holds"):
        read_archive(gzip.compress(plain.ljust(most, b"\0")), LIMITS)


def test_what_a_system_without_unix_modes_writes_is_a_plain_file():
    member = zipfile.ZipInfo("link")
    member.create_system, member.external_attr = 0, 0o120777 << 16
    assert read_archive(zipped(("SKILL.md", SKILL), (member, b"x")))[1] == SkillFile("link", "100644", b"x")


def test_a_tar_need_not_end_in_empty_blocks():
    """The last member may fill its last block, be empty, or be followed by less than a block."""
    for name, data, rest in (("f", b"x" * 512, b""), ("f", b"", b""), ("f", b"x", b"rest")):
        files = read_archive(blocks("SKILL.md", SKILL) + blocks(name, data) + rest)
        assert files[1] == SkillFile(name, "100644", data)


@pytest.mark.parametrize("mode", [b"755", b"0000755", b"   755 ", b"100755 "])
def test_a_mode_is_read_with_and_without_zeros_before_it(mode):
    assert read_archive(blocks("SKILL.md", SKILL, mode=mode))[0].mode == "100755"


def test_a_size_is_octal_and_read_to_its_first_digit():
    every_digit = 0o1234567
    assert (
        len(read_archive(blocks("SKILL.md", SKILL) + blocks("f", bytes(every_digit)))[1].data) == every_digit
    )
    assert read_archive(blocks("SKILL.md", SKILL) + header(b"f"))[1].data == b""
    for size in (b"10000000000", b"00000000009", b"\x80\0\0\0"):
        with pytest.raises(InvalidInput, match="damaged"):
            read_archive(blocks("SKILL.md", SKILL) + _with_size(size))
    assert read_archive(blocks("SKILL.md", SKILL) + _with_size(bytes(12)))[1].data == b""


def _with_size(field: bytes) -> bytes:
    """A member whose size is written like this."""
    block = bytearray(header(b"f"))
    block[124:136] = field.ljust(12, b"\0")
    return signed(block)


def test_a_name_may_fill_its_field_and_the_one_before_it():
    """100 bytes of name run into the mode, 155 of folders into the padding; high bytes make a large checksum."""
    name, folders = ("é" * 50).encode(), ("ü" * 77 + "x").encode()
    assert (len(name), len(folders)) == (100, 155)
    tar = blocks("SKILL.md", SKILL) + header(name, prefix=folders, padding=b"junk")
    assert read_archive(tar)[1].path == f"{folders.decode()}/{name.decode()}"


def pax(text: bytes) -> bytes:
    """A tar whose second file has these records."""
    records = blocks("records", text, kind=b"x")
    return blocks("SKILL.md", SKILL) + records + blocks("plain.txt", b"x")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (b"18 path=a b=c.txt\n", "a b=c.txt"),
        (b"5 a=\n", "plain.txt"),
        (b"5 a=\n16 path=long.md\n", "long.md"),
        (b"65536 comment=".ljust(65535, b"c") + b"\n", "plain.txt"),
    ],
)
def test_records_before_a_member_may_name_it(text, path):
    assert read_archive(pax(text))[1].path == path


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"0 a=b\n", "cannot be read"),
        (b"4 =\n", "cannot be read"),
        (b"9 a=b\n", "cannot be read"),
        (b"x a=b\n", "cannot be read"),
        (b"6 abc\n", "cannot be read"),
        (b"18446744073709551616 a=b\n", "cannot be read"),
        (b"10 size=9\n", "sparse or very large"),
        (b"22 GNU.sparse.major=1\n", "sparse or very large"),
    ],
)
def test_records_that_cannot_be_read_or_change_the_size_are_refused(text, words):
    with pytest.raises(InvalidInput, match=words):
        read_archive(pax(text))


def test_more_records_than_a_member_can_need_are_refused():
    with pytest.raises(LimitExceeded, match="A member's metadata has more than 65536 bytes"):
        read_archive(pax(b"65537 comment=".ljust(65536, b"c") + b"\n"))


@given(st.binary(max_size=2000))
def test_any_bytes_at_all_end_in_an_error_of_ours(data):
    for start in (b"", b"PK\x03\x04", b"\x1f\x8b\x08\x00", b"PK\x05\x06"):
        with pytest.raises(PlatformError):
            read_archive(start + data)


@given(st.sampled_from(sorted(PACKED)), st.data())
def test_damage_ends_in_an_error_of_ours_or_in_files(kind, data):
    packed = bytearray(PACKED[kind])
    for _ in range(data.draw(st.integers(1, 4))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(PlatformError):
        assert read_archive(bytes(packed))


@given(st.binary(max_size=700))
def test_any_metadata_of_a_tar_ends_in_an_error_of_ours_or_in_files(text):
    header = tar_member("pax", type=b"x", size=len(text)).tobuf(tarfile.USTAR_FORMAT)
    data = header + text.ljust(-(-len(text) // 512) * 512, b"\0") + tarred(("SKILL.md", SKILL))
    with contextlib.suppress(PlatformError):
        assert read_archive(data)


def test_the_checksum_of_the_content_is_looked_at():
    data = zipped(("SKILL.md", SKILL), method=zipfile.ZIP_STORED)
    with pytest.raises(InvalidInput, match=r"damaged: .*CRC"):
        read_archive(data.replace(b"# demo", b"# dome"))
    with pytest.raises(InvalidInput, match=r"damaged: .*incorrect"):
        read_archive(PACKED["tar.gz"][:-8] + bytes(8))
