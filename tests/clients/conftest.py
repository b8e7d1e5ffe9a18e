"""A real server process on loopback, fed by the real commands, and the real clients that are pointed at it.

The clients are npm packages at pinned versions (`node/package-lock.json`), installed by `make test-all` into
`.venv/node` together with a node that is new enough for them.
"""

import pytest

from tests.clients.clients import (
    Claude,
    Clawhub,
    Codex,
    Copilot,
    Gemini,
    Inspector,
    OpenCode,
    Skills,
    StandInModel,
    find_clients,
)
from tests.clients.private import running_private
from tests.clients.registry import Registry, running
from tests.support.wheels import make_wheelhouse
from vskill_platform.web.clients.own_client import CLIENT, SCANNER


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    with running(tmp_path_factory.mktemp("registry")) as opened:
        yield opened


@pytest.fixture(scope="module")
def private(tmp_path_factory):
    with running_private(tmp_path_factory.mktemp("private")) as opened:
        yield opened


@pytest.fixture(scope="session")
def installed():
    found = find_clients()
    if found is None:
        pytest.skip("the npm clients are not installed: run `make test-all`, or `make node` once")
    return found


@pytest.fixture(scope="session")
def wheels(tmp_path_factory):
    """What our own client and scanner need of others."""
    return make_wheelhouse(tmp_path_factory.mktemp("index") / "wheels", *CLIENT.needs, *SCANNER.needs)


@pytest.fixture
def skills(installed, registry: Registry, tmp_path):
    return Skills(installed, registry, tmp_path)


@pytest.fixture
def clawhub(installed, registry: Registry, tmp_path):
    return Clawhub(installed, registry, tmp_path)


@pytest.fixture
def claude(installed, registry: Registry, tmp_path):
    return Claude(installed, registry, tmp_path)


@pytest.fixture
def codex(installed, registry: Registry, tmp_path):
    return Codex(installed, registry, tmp_path)


@pytest.fixture
def copilot(installed, registry: Registry, tmp_path):
    return Copilot(installed, registry, tmp_path)


@pytest.fixture
def gemini(installed, registry: Registry, tmp_path):
    return Gemini(installed, registry, tmp_path)


@pytest.fixture
def opencode(installed, registry: Registry, tmp_path):
    return OpenCode(installed, registry, tmp_path)


@pytest.fixture
def inspector(installed, registry: Registry, tmp_path):
    return Inspector(installed, registry, tmp_path)


@pytest.fixture
def model():
    """What Codex and Copilot send their prompts to."""
    with StandInModel() as opened:
        yield opened
