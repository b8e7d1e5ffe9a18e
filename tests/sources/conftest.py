"""A git host on loopback for each test, and a source that takes it for a public one."""

import pytest

from tests.support.git_server import git_server
from vskill_platform.sources.addresses import Hosts
from vskill_platform.sources.command import find_git
from vskill_platform.sources.git import FetchSettings, GitSource

GIT = find_git()


@pytest.fixture
def server(tmp_path):
    with git_server(tmp_path / "served") as running:
        yield running


@pytest.fixture
async def open_source(tmp_path):
    """Makes sources that are closed at the end."""
    opened = []

    def make(hosts: Hosts, **settings) -> GitSource:
        source = GitSource(GIT, hosts, FetchSettings(folder=tmp_path / "fetch", **settings))
        opened.append(source)
        return source

    yield make
    for source in opened:
        await source.close()


@pytest.fixture
def source(server, open_source):
    """github.com, served by the test."""
    return open_source(Hosts(("github.com",), rewrites=(server.rewrite(),)))
