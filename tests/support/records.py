"""Submission and skill records for tests, as they are stored."""

import msgspec

from vskill_core.identity import Identity, submission_id, upload_identity
from vskill_platform.domain import keys
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Step, Submission, create
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.worker_context import Env


def identity(slug: str = "demo") -> Identity:
    return upload_identity("tests", slug)


def submission(slug: str = "demo", at: int = 1_000, **changes: object) -> Submission:
    """A fresh record of a place, with single fields replaced."""
    place = identity(slug)
    record = create(
        submission_id=submission_id(place),
        identity=place,
        repo_url=place.url,
        skill_name=slug,
        step=Step(f"event-{slug}", at, "user:tester", "submitted"),
    )
    return msgspec.structs.replace(record, **changes)


def in_state(state: State, slug: str, updated_at: int) -> Submission:
    """A record as a list would find it; only the fields that reads look at matter."""
    return submission(slug, state=state, updated_at=updated_at)


def stored(record: Submission) -> bytes:
    return msgspec.json.encode(record)


async def put_copies(env: Env, skill: PublishedSkill, count: int) -> list[str]:
    """Copies of a published skill under other names, for lists that are longer than a test can publish; their slugs."""
    folder = skill.canonical.rpartition("/")[0]
    slugs = [f"copy-{number:03}" for number in range(count)]
    copies = [
        msgspec.structs.replace(
            skill,
            canonical=f"{folder}/{slug}",
            slug=slug,
            name=slug,
            aliases=(),
            listed_as={"public": slug},
            created_at=number,
        )
        for number, slug in enumerate(slugs)
    ]
    await env.kv.commit([Put(keys.skill(one.canonical), msgspec.json.encode(one)) for one in copies])
    number = skill.current_version or ""
    version = await env.kv.get(keys.version(skill.canonical, number))
    assert version is not None
    await env.kv.commit([Put(keys.version(one.canonical, number), version.value) for one in copies])
    return slugs
