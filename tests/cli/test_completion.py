"""A shell completes commands with what `completion` prints."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from vskill_platform.cli import cli


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_that_names_the_executable(shell):
    printed = CliRunner().invoke(cli, ["completion", shell])
    assert printed.exit_code == 0
    assert "_VSKILL_PLATFORM_COMPLETE" in printed.output


def test_bash_completes_a_command_with_it():
    script = CliRunner().invoke(cli, ["completion", "bash"]).output
    program = shutil.which("vskill-platform", path=str(Path(sys.executable).parent))
    asked = f"COMP_WORDS='vskill-platform qu' COMP_CWORD=1 _VSKILL_PLATFORM_COMPLETE=bash_complete {program}"
    done = subprocess.run(["bash", "-c", f"{script}\n{asked}"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["plain,queue"]


def test_another_shell_is_refused_with_what_there_is():
    refused = CliRunner().invoke(cli, ["completion", "tcsh"])
    assert refused.exit_code == 2 and "bash" in refused.output
