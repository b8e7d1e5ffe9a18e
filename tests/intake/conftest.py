"""A git host on loopback that stands in for github.com, and an environment that fetches from it."""

import pytest

from tests.support.envs import open_test_env
from tests.support.git_server import git_server


@pytest.fixture
def server(tmp_path):
    with git_server(tmp_path / "served") as running:
        yield running


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path, server):
    async with open_test_env(
        request.param, tmp_path, source_rewrites=(server.rewrite(), server.rewrite("gitlab.com"))
    ) as opened:
        yield opened
