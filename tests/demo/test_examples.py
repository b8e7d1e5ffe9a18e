"""The bundled examples: what they are made of, and that they are inert where they lie."""

import subprocess

from vskill_core.content import check_files
from vskill_platform.domain.submissions.states import State
from vskill_platform.settings import Settings
from vskill_platform.sources.addresses import parse_rewrite
from vskill_platform.sources.examples import (
    BUNDLED,
    _skill_files,
    bundled_repositories,
    commit_of,
    example_rewrites,
    known_bad_digests,
    write_commit,
)
from vskill_scan.reading.manifest import read_manifest


def skills():
    return [skill for repository in bundled_repositories() for skill in repository.skills]


def test_there_are_twenty_good_ones_of_several_owners_and_one_for_every_verdict():
    good = [skill for skill in skills() if skill.expect is State.PUBLISHED]
    assert len(good) >= 20
    assert len({repository.owner for repository in bundled_repositories()}) >= 5
    assert {skill.expect for skill in skills()} == {
        State.PUBLISHED,
        State.TIER1_FAILED,
        State.NEEDS_REVIEW,
        State.REJECTED,
        State.BLOCKED,
    }


def test_the_good_ones_show_versions_scripts_assets_licences_and_categories():
    good = [skill for skill in skills() if skill.expect is State.PUBLISHED]
    manifests = [read_manifest(version[0].data) for skill in good for version in skill.versions]
    assert len({manifest.license for manifest in manifests}) >= 5
    assert len({manifest.metadata.get("category") for manifest in manifests}) >= 5
    assert max(len(skill.versions) for skill in good) >= 3
    paths = {file.path for skill in good for version in skill.versions for file in version}
    assert any(path.startswith("scripts/") for path in paths)
    assert any(path.startswith("assets/") for path in paths)


def test_every_good_one_is_a_valid_skill_named_as_its_folder():
    for skill in skills():
        if skill.expect is State.PUBLISHED:
            for version in skill.versions:
                files = _skill_files(version)
                check_files(files)
                assert read_manifest(version[0].data, skill.name).name == skill.name


def test_nothing_that_looks_for_skills_finds_them_in_the_source():
    """The bad ones are text in a format of their own: no SKILL.md, no script, nothing executable."""
    files = [path for path in BUNDLED.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".txt"}
    assert not any(path.stat().st_mode & 0o111 for path in files)


def test_known_bad_content_is_told_by_its_digest_and_does_nothing():
    assert len(known_bad_digests()) == 2
    assert all(not skill.known_bad or skill.expect is State.BLOCKED for skill in skills())


def test_two_are_published_with_a_note_on_their_form_and_no_other_has_one():
    noted = {
        skill.name: [note.code.value for note in read_manifest(skill.versions[-1][0].data, skill.name).notes]
        for skill in skills()
    }
    assert {name: codes for name, codes in noted.items() if codes} == {
        "broken-header": ["name-invalid"],
        "unnamed": ["description-missing"],
    }


def test_every_installation_makes_the_same_commits_and_never_goes_back(tmp_path):
    repository = next(one for one in bundled_repositories() if one.commits >= 3)
    for root in (tmp_path / "a", tmp_path / "b"):
        assert commit_of(repository, root) == 0
        for number in (1, 2, 2, 3, 1):
            write_commit(repository, root, number)
        assert commit_of(repository, root) == 3
    heads = [
        subprocess.run(
            ["git", "rev-parse", "main"],
            cwd=repository.folder(tmp_path / name),
            capture_output=True,
            check=True,
        ).stdout
        for name in ("a", "b")
    ]
    assert heads[0] == heads[1]


def test_the_rules_that_stand_in_for_their_owners_are_valid_whatever_the_folder_is_called(tmp_path):
    for name in ("plain", "with space", "a=b", "ünïcode"):
        for rule in example_rewrites(Settings(data_dir=str(tmp_path / name))):
            prefix, mirror = parse_rewrite(rule)
            assert prefix.startswith("https://github.com/vskill-") and mirror.startswith("file:///")
