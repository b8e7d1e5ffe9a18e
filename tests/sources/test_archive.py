"""Archives: what a person packs is read, and everything else is refused with the member's name and a fix."""

import contextlib
import gzip
import io
import tarfile
import zipfile
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.git_server import skill_md
from vskill_platform.domain.content import ContentLimits, SkillFile
from vskill_platform.domain.errors import InvalidInput, LimitExceeded, NoSkillFound, PlatformError
from vskill_platform.sources.archive import read_archive

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
    "zip: repository": (zipped(("SKILL.md", SKILL), (".GIT/hooks/x", b"y")), "leave the folder .git out"),
    "zip: method": (zipped(("SKILL.md", SKILL), method=zipfile.ZIP_LZMA), "method that is not read here"),
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
    "not an archive": (b"hello", "zip, tar or tar.gz"),
    "nothing": (b"", "zip, tar or tar.gz"),
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


def test_an_archive_without_a_skill_is_refused():
    with pytest.raises(NoSkillFound):
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
    with pytest.raises((InvalidInput, LimitExceeded), match=r"times larger|more than"):
        read_archive(BOMBS[case])


LIMITS = ContentLimits(files=3, bytes_total=5000, bytes_file=2000, depth=4)
OVER = {
    "files": [(f"f{n}", b"") for n in range(4)],
    "one file": [("f", bytes(range(256)) * 8)],
    "all files": [(f"f{n}", bytes(range(200)) * 10) for n in range(2)] + [("g", bytes(range(250)) * 7)],
    "depth": [("a/b/c/d/e/f", b"")],
    "folders": [(f"d{n}/", b"") for n in range(20)],
}


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
@pytest.mark.parametrize("case", OVER)
def test_every_limit_holds_in_every_kind(kind, case):
    members = [("SKILL.md", SKILL), *OVER[case]]
    if kind == "zip":
        data = zipped(*members)
    else:
        data = tarred(
            *((tar_member(n, type=tarfile.DIRTYPE) if n.endswith("/") else n, d) for n, d in members)
        )
        data = gzip.compress(data) if kind == "tar.gz" else data
    with pytest.raises(LimitExceeded):
        read_archive(data, LIMITS)


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
    with pytest.raises(InvalidInput, match="damaged"):
        read_archive(data.replace(b"# demo", b"# dome"))
    assert zlib.crc32(SKILL)
