"""Commands, called in this process, over a store of their own."""

import os

import pytest
from click.testing import CliRunner, Result

from vskill_platform.cli import cli

SKILL_MD = "---\nname: tidy\ndescription: Tidies a folder.\n---\n# Tidy\n"


@pytest.fixture
def data_dir(tmp_path, monkeypatch):
    """The only setting is the data folder, whatever the developer has set."""
    for name in [name for name in os.environ if name.startswith("VSKILL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("VSKILL_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def run(data_dir):
    """Calls a command as a person would."""

    def call(*arguments: object, code: int = 0) -> Result:
        result = CliRunner().invoke(cli, [str(one) for one in arguments], prog_name="vskill-platform")
        assert result.exit_code == code, result.output
        return result

    return call


@pytest.fixture
def skill(tmp_path):
    """A folder with a skill in it."""
    folder = tmp_path / "tidy"
    folder.mkdir()
    (folder / "SKILL.md").write_text(SKILL_MD)
    return folder
