"""The web side over memory engines, called without a network."""

import httpx2
import pytest

from tests.support.envs import open_product_env
from vskill_platform.settings import Settings
from vskill_platform.web.app import create_app


@pytest.fixture
async def env():
    async with open_product_env(Settings(store="memory:")) as opened:
        yield opened


@pytest.fixture
async def client(env):
    transport = httpx2.ASGITransport(create_app(env))
    async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as opened:
        yield opened
