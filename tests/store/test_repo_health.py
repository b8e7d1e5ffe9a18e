"""The record of a repository's health: what is not known is not said, and an old record stays readable."""

import msgspec
import pytest

from tests.support.envs import active_env, open_test_env
from tests.support.faults import HookedKV
from vskill_core.errors import Conflict, RecordMalformed, StoreUnavailable
from vskill_core.identity import normalise
from vskill_platform.domain import keys
from vskill_platform.domain.skills.licences import NONE, NOT_RECOGNISED, licence_of, recognise
from vskill_platform.store.repo_health import (
    Observation,
    Reach,
    RepoHealth,
    StoredFacts,
    get_health,
    health_write,
    list_health,
    read_health,
    renew_health,
)

pytestmark = pytest.mark.anyio

REPO = normalise("https://github.com/Ann/Tools")
FACTS = StoredFacts("c" * 40, "main", 5, "MIT", "LICENSE")
REACHED = Observation(Reach.REACHABLE, facts=FACTS)
GONE = Observation(Reach.GONE, "no such repository")
DOWN = Observation(Reach.UNAVAILABLE, "no answer")


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as opened:
        yield opened


def history(*seen: Observation) -> RepoHealth:
    health = None
    for now, one in enumerate(seen, start=1):
        health = renew_health(health, REPO, one, now)
    assert health is not None
    return health


@pytest.mark.parametrize(
    ("seen", "status", "since", "gone_since", "reached_at", "facts"),
    [
        ((REACHED,), Reach.REACHABLE, 1, None, 1, FACTS),
        ((REACHED, REACHED), Reach.REACHABLE, 1, None, 2, FACTS),
        ((REACHED, GONE, GONE), Reach.GONE, 2, 2, 1, FACTS),
        ((REACHED, DOWN), Reach.UNAVAILABLE, 2, None, 1, FACTS),
        ((GONE, DOWN, GONE), Reach.GONE, 3, 1, None, StoredFacts()),
        ((GONE, REACHED), Reach.REACHABLE, 2, None, 2, FACTS),
        ((GONE, REACHED, GONE), Reach.GONE, 3, 3, 2, FACTS),
        ((DOWN, DOWN), Reach.UNAVAILABLE, 1, None, None, StoredFacts()),
    ],
)
def test_gone_and_unavailable_are_different_and_what_was_known_stays(
    seen, status, since, gone_since, reached_at, facts
):
    health = history(*seen)
    assert (health.status, health.status_since, health.gone_since) == (status, since, gone_since)
    assert (health.reached_at, health.facts, health.checked_at) == (reached_at, facts, len(seen))


def test_an_unavailable_host_is_believed_for_less_long():
    assert history(REACHED).due_at() == history(GONE).due_at() == 1 + 24 * 3_600_000
    assert history(DOWN).due_at() == 1 + 3_600_000


async def test_stored_under_the_repository_as_compared_and_over_the_version_that_was_read(env):
    health = history(REACHED)
    await env.kv.commit([health_write(health, REPO, 0)])
    assert await env.kv.get("repohealth:github.com/ann/tools") is not None
    found, version = await read_health(normalise("github.com/ANN/tools"))
    assert found == health
    with pytest.raises(Conflict):
        await env.kv.commit([health_write(health, REPO, 0)])
    await env.kv.commit([health_write(history(REACHED, GONE), REPO, version)])
    assert (await get_health(REPO)).status is Reach.GONE


async def test_a_record_of_the_first_age_is_readable(env):
    old = {
        "repo": REPO.repo_key,
        "url": REPO.url,
        "status": "reachable",
        "status_since": 1,
        "checked_at": 2,
    }
    await env.kv.put(keys.repohealth(REPO.repo_key), msgspec.json.encode(old))
    health = await get_health(REPO)
    assert (health.facts.archived, health.facts.licence, health.gone_since) == (None, None, None)


async def test_lists_page_skip_what_is_malformed_and_never_hide_a_failure(env):
    for name in ("a", "b", "c"):
        place = normalise(f"https://github.com/ann/{name}")
        await env.kv.commit([health_write(renew_health(None, place, REACHED, 1), place, 0)])
    await env.kv.put("repohealth:github.com/ann/bad", b"{")
    first = await list_health(limit=2)
    rest = await list_health(after=first.after, limit=10)
    assert [one.repo[-1] for one in (*first.items, *rest.items)] == ["a", "b", "c"]
    assert first.skipped + rest.skipped == 1
    with pytest.raises(RecordMalformed):
        await get_health(normalise("https://github.com/ann/bad"))
    hooked = HookedKV(env.kv)
    hooked.failing.add("scan")
    with active_env(env, kv=hooked), pytest.raises(StoreUnavailable):
        await list_health()


# Licences.

MIT_GRANT = "Permission is hereby granted, free of charge, to any person obtaining a copy of it."
MIT_NOTICE = "The above copyright notice and this permission notice shall be included."
BSD = "Redistribution and use in source and binary forms, with or without modification."
ISC = "Permission to use, copy, modify, and/or distribute this software for any purpose is granted"


@pytest.mark.parametrize(
    ("text", "licence"),
    [
        (f"{MIT_GRANT}\n{MIT_NOTICE}", "MIT"),
        (MIT_GRANT, "MIT-0"),
        ("                 Apache License\n           Version 2.0, January 2004", "Apache-2.0"),
        ("GNU GENERAL PUBLIC LICENSE\n   Version 3, 29 June 2007", "GPL-3.0"),
        ("GNU GENERAL PUBLIC LICENSE\n   Version 2, June 1991", "GPL-2.0"),
        ("GNU LESSER GENERAL PUBLIC LICENSE\n Version 3\n the GNU General Public License", "LGPL-3.0"),
        ("GNU LESSER GENERAL PUBLIC LICENSE Version 2.1", "LGPL-2.1"),
        ("# GNU Affero General Public License\n\nVersion 3", "AGPL-3.0"),
        ("Mozilla Public License Version 2.0", "MPL-2.0"),
        (f"{BSD} Neither the name of the author", "BSD-3-Clause"),
        (BSD, "BSD-2-Clause"),
        (f"{ISC}, provided that the above copyright notice appears", "ISC"),
        (ISC, "0BSD"),
        ("This is free and unencumbered software released into the public domain.", "Unlicense"),
        ("CC0 1.0 Universal", "CC0-1.0"),
        ("Creative Commons Attribution 4.0 International", "CC-BY-4.0"),
        ("Creative Commons Attribution-ShareAlike 4.0 International", "CC-BY-SA-4.0"),
        ("// SPDX-License-Identifier: EUPL-1.2\n", "EUPL-1.2"),
        ("SPDX-License-Identifier: <script>", NOT_RECOGNISED),
        ("SPDX-License-Identifier:", NOT_RECOGNISED),
        ("All rights reserved.", NOT_RECOGNISED),
        ("", NOT_RECOGNISED),
    ],
)
def test_the_common_licences_are_recognised_by_their_words(text, licence):
    assert licence_of(text.encode()) == licence


def test_bytes_that_are_no_text_and_long_ones_do_no_harm():
    assert licence_of(bytes(range(256)) * 10_000) == NOT_RECOGNISED
    assert licence_of("İ".encode() * 50_000 + b"SPDX-License-Identifier: MIT") == NOT_RECOGNISED


def test_no_file_is_not_an_unknown_licence():
    assert recognise({}) == (NONE, None)
    assert recognise({"README": b"x"}) == (NONE, None)
    assert recognise({"COPYING": b"x"}) == (NOT_RECOGNISED, "COPYING")
