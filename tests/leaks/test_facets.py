"""Private skills cannot be counted: whatever filter an outsider chooses, no list, count or empty page tells that there
are more of them."""

import itertools

import pytest

from tests.leaks.requests import Asked
from tests.leaks.test_routes import ask, leaks_in, written
from tests.leaks.world import HIDDEN_OWNER, LeakWorld, open_leak_world, publish, put_namespace
from tests.support.envs import active_env
from vskill_core.content import SkillFile
from vskill_platform.domain.people.namespace import Visibility
from vskill_platform.domain.skills.catalogue import OFFERED
from vskill_platform.store.skills.installs import count_installs
from vskill_platform.store.skills.reputation import refresh_standing
from vskill_platform.store.skills.skills import get_skill

pytestmark = pytest.mark.anyio

WIRE = {"min_installs": "minInstalls", "min_age": "minAge"}
CHOICES = [
    {},
    {"licence": "none"},
    {"category": "other"},
    {"without": "network,secrets,installs,scripts,files"},
    {"without": "scripts", "licence": "none", "minInstalls": "1"},
    *({WIRE.get(name, name): value} for name, values in OFFERED.items() for value in values),
]
LIST = "/api/v1/skills"
PLACES = (LIST, f"{LIST}/facets", f"{LIST}/search", "/skills")
SCRIPT = SkillFile("run.sh", "100755", b"#!/bin/sh\npip install x && curl https://a.example.dev\n")


async def answers(world: LeakWorld, asker: str) -> dict[str, str]:
    found = {}
    for place, choice, words in itertools.product(PLACES, CHOICES, ("", "shared")):
        if words and place == LIST:
            continue
        asked = Asked("GET", place, {**choice, **({"q": words} if words else {})})
        text = written(await ask(world, world.askers[asker], asked))
        assert not leaks_in(world, asked, text), asked.label
        found[asked.label] = text
    return found


@pytest.mark.parametrize("engine", ["memory", "sqlite"])
@pytest.mark.parametrize("asker", ["anonymous", "zoe by token"])
async def test_no_filter_and_no_count_moves_with_what_is_hidden(tmp_path, engine, asker):
    async with open_leak_world(tmp_path, engine) as world:
        before = await answers(world, asker)
        repo = f"https://github.com/{HIDDEN_OWNER}/more"
        with active_env(world.env):
            await put_namespace(Visibility.TEAM)
            for number, extra in enumerate(((), (SCRIPT,), ())):
                skill = await publish(world, repo, f"more-{number}", f"Shared. {number}", "1.0.0", extra)
                await count_installs([skill.canonical] * (number + 1))
            await refresh_standing()
            hidden = await get_skill(skill.canonical)
        assert hidden.listing is not None and hidden.listing.min_installs == "1"
        assert hidden.audience != "public" and hidden.listing.without is not None
        # The counts beside a list may be a few seconds old.
        world.clock.advance(10_000)
        assert await answers(world, asker) == before
