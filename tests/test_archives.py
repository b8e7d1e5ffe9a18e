"""Archives: the same bytes for the same files, whoever makes them, and readable by everyone's tools."""

import hashlib
import io
import shutil
import stat
import subprocess
import tarfile
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vskill_core.archives import tar_archive
from vskill_core.content import MODES, SkillFile, check_path
from vskill_core.errors import InvalidInput, NoSkillFound, PlatformError
from vskill_platform.domain.downloads import archive_digests, zip_archive

LONG = "docs/" + "a" * 60 + "/" + "b" * 60 + "/reference.md"
FILES = (
    SkillFile("SKILL.md", "100644", b"---\nname: a\ndescription: b\n---\n"),
    SkillFile("scripts/run.sh", "100755", b"#!/bin/sh\necho hello\n"),
    SkillFile("docs/für-dich.md", "100644", "grüß dich\n".encode()),
    SkillFile(LONG, "100644", b"long"),
    SkillFile("empty", "100644", b""),
    SkillFile("large.bin", "100644", bytes(range(256)) * 1024),
)


def is_path(path: str) -> bool:
    try:
        check_path(path)
    except PlatformError:
        return False
    return True


PATHS = st.text(st.sampled_from("ab/é.日-"), min_size=1, max_size=130).filter(is_path)
TREES = st.dictionaries(PATHS, st.tuples(st.sampled_from(MODES), st.binary(max_size=1500)), max_size=8).map(
    lambda tree: [FILES[0], *(SkillFile(path, *facts) for path, facts in tree.items())]
)


def from_zip(data: bytes) -> set[tuple[str, str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return {(i.filename, f"{i.external_attr >> 16:o}", archive.read(i)) for i in archive.infolist()}


def from_tar(data: bytes) -> set[tuple[str, str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        members = archive.getmembers()
        assert all(member.isreg() for member in members)
        return {
            (member.name, f"100{member.mode:o}", archive.extractfile(member).read())  # type: ignore[union-attr]
            for member in members
        }


def as_set(files) -> set[tuple[str, str, bytes]]:
    return {(file.path, file.mode, file.data) for file in files}


def test_the_bytes_are_these_on_every_machine_and_for_ever():
    """Attestations that were handed out name these digests: a change here breaks every one of them."""
    found = archive_digests(FILES)
    assert found.zip == "d649bf8bbd4370a38edc3a62db0dad47f7a1dc41204be7073cd2cbcf89870cd8"
    assert found.tar_gz == "2da24bd2576cddf93dc5cea2daaac4b90e8e70766f2e1272333d1d060ac87750"
    assert hashlib.sha256(zip_archive(FILES)).hexdigest() == found.zip


@given(TREES, st.randoms(use_true_random=False))
def test_the_order_in_which_files_are_given_does_not_matter(files, random):
    shuffled = list(files)
    random.shuffle(shuffled)
    assert zip_archive(shuffled) == zip_archive(files)
    assert tar_archive(shuffled) == tar_archive(files)


@given(TREES)
def test_what_goes_in_comes_out_with_modes_and_names(files):
    assert from_zip(zip_archive(files)) == as_set(files)
    assert from_tar(tar_archive(files)) == as_set(files)


@given(TREES)
def test_two_different_contents_never_share_an_archive(files):
    flipped = MODES[files[-1].mode == MODES[0]]
    changed = [*files[:-1], SkillFile(files[-1].path, flipped, files[-1].data)]
    assert zip_archive(changed) != zip_archive(files)
    assert tar_archive(changed) != tar_archive(files)


def test_entries_stand_in_the_order_of_their_bytes_and_carry_no_trace_of_a_machine():
    with zipfile.ZipFile(io.BytesIO(zip_archive(FILES))) as archive:
        infos = archive.infolist()
        assert {info.date_time for info in infos} == {(1980, 1, 1, 0, 0, 0)}
        assert all(info.flag_bits & 0x800 and info.create_system == 3 and not info.extra for info in infos)
        assert archive.comment == b""
    with tarfile.open(fileobj=io.BytesIO(tar_archive(FILES))) as archive:
        members = archive.getmembers()
        facts = {(member.mtime, member.uid, member.gid, member.uname, member.gname) for member in members}
        assert facts == {(0, 0, 0, "", "")}
    order = sorted((file.path for file in FILES), key=str.encode)
    assert [info.filename for info in infos] == [member.name for member in members] == order
    assert tar_archive(FILES)[4:8] == bytes(4), "the gzip header has a time"


def test_without_a_skill_file_at_the_root_there_is_no_archive():
    for make in (zip_archive, tar_archive):
        with pytest.raises(NoSkillFound):
            make([SkillFile("sub/SKILL.md", "100644", b"x")])
        with pytest.raises(InvalidInput):
            make([FILES[0], FILES[0]])


@pytest.mark.parametrize(
    ("tool", "make", "command"),
    [
        ("unzip", zip_archive, ["unzip", "-q", "archive", "-d", "out"]),
        ("tar", tar_archive, ["tar", "-xzf", "archive", "-C", "out"]),
    ],
)
def test_the_tools_of_the_system_read_them_and_executable_bits_survive(tmp_path, tool, make, command):
    if shutil.which(tool) is None:
        # Not a skip: the readers of the standard library have been asked above.
        return
    (tmp_path / "archive").write_bytes(make(FILES))
    (tmp_path / "out").mkdir()
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, env={"LC_ALL": "C.UTF-8"})
    for file in FILES:
        found = tmp_path / "out" / file.path
        assert found.read_bytes() == file.data
        assert bool(found.stat().st_mode & stat.S_IXUSR) is (file.mode == "100755")
