"""Commands, called in this process, over a store of their own."""

import logging
import os

import pytest
import structlog
from click.testing import CliRunner, Result

from vskill_platform.cli import cli

SKILL_MD = "---\nname: tidy\ndescription: Tidies a folder.\n---\n# Tidy\n"


@pytest.fixture(autouse=True)
def logging_as_it_was():
    """A command configures logging for its process, which here is the tests'."""
    root = logging.getLogger()
    handlers, level, configuration = root.handlers, root.level, structlog.get_config()
    yield
    root.handlers = handlers
    root.setLevel(level)
    structlog.configure(**configuration)


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
