"""Submissions and skills in quantity, as rows for PostgreSQL: a few are made by the product itself, from submit to
PUBLISHED, and every other one is such a record with another name, place and time.

The mix is that of an installation of some age: one submission in five was published, most others failed. All sizes
have the same recent past (one end every 7 seconds, so many waiting, so many stuck); a larger one is older.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence

import msgspec

from vskill_platform.bootstrap import env_for
from vskill_platform.domain import submission
from vskill_platform.domain.audience import EVERYTHING
from vskill_platform.domain.content import SkillFile
from vskill_platform.domain.identity import Identity
from vskill_platform.domain.states import State
from vskill_platform.domain.submission import Step, Submission
from vskill_platform.env import Env
from vskill_platform.intake.submit import SubmittedBy, submit_repository
from vskill_platform.kv.collections import SUBMISSIONS
from vskill_platform.kv.entries import Entry
from vskill_platform.queue.consumer import run_consumer
from vskill_platform.settings import Settings
from vskill_platform.sources.contract import Fetched
from vskill_platform.submission_store import count_submissions
from vskill_platform.worker_context import run_with_worker_env

#: Between the ends of two runs.
EVERY_MS = 7_200
#: Submissions for each published skill.
PER_SKILL = 5
#: The latest so many submissions still wait in the line, but for one in five.
WAITING = 200
#: Between two that wait: all of them for less than the stuck threshold.
WAITING_MS = 1_000
#: In the description of every skill.
EVERYWHERE = "agent"
#: In the names of one skill in twelve.
COMMON = "charts"

_OWNER, _REPO, _PERSON, _NAME, _ID = "draft-owner", "draft-repo", "draft-person", "draft-skill", "sub_"
_COMMIT = "0" * 40
_DIGEST = "f" * 64

#: A word of the name, what the skill is about, its licence and its agent; the words decide the category.
_KINDS = (
    ("refactor", "Refactoring of Python code in small steps, with a commit for each.", "MIT", ""),
    ("fixtures", "Tests with fixtures, and coverage of what has none.", "Apache-2.0", "claude"),
    (COMMON, "A CSV or a SQL database turned into a chart.", "MIT", ""),
    ("deploy", "Docker and Kubernetes deployment, with monitoring after a release.", "", "codex"),
    ("audit", "A security audit that looks for secrets and known CVE entries.", "MIT", ""),
    ("changelog", "A changelog and a reference of the documentation.", "BSD-3-Clause", "cursor"),
    ("layout", "Layout, typography and accessibility of a design.", "MIT", ""),
    ("translate", "Translation of an article with its grammar checked.", "CC-BY-4.0", "claude"),
    ("meeting", "Meeting notes turned into tasks and a schedule.", "", ""),
    ("papers", "A survey of the literature with a citation for each paper.", "MIT", "gemini"),
    ("invoice", "An invoice or a contract turned into reports for the customer.", "GPL-3.0-only", ""),
    ("tidy", "Nothing that any other one does.", "", ""),
)
#: In 100 submissions that were not published.
_ENDED = (
    (State.TIER1_FAILED,) * 55
    + (State.REJECTED,) * 30
    + (State.DEQUEUED,) * 7
    + (State.BLOCKED,) * 5
    + (State.NEEDS_REVIEW,) * 3
)
_PATIENCE_S = 60
_STUCK = (State.RECEIVED, State.TIER1_SCANNING, State.AUTO_APPROVED)


class One(msgspec.Struct, frozen=True):
    """What distinguishes a record from its draft."""

    number: int
    at: int

    @property
    def spread(self) -> int:
        """The number, without its order."""
        return self.number * 2654435761 % 2**32

    @property
    def owner(self) -> str:
        """Half of everything is of 97 owners."""
        return f"org-{self.spread % 97}" if self.spread & 64 else f"dev-{self.spread % 49_999}"

    @property
    def name(self) -> str:
        return f"{_KINDS[self.number // PER_SKILL % len(_KINDS)][0]}-{self.number:07d}"

    @property
    def id(self) -> str:
        # Not the id of the place, which costs a hash: as long, and as little in order.
        return f"sub_{self.spread:08x}-{self.number:08x}-5000-8000-000000000000"


class Draft:
    """The text of a record, cut at everything that is another's in another record."""

    _cuts = re.compile(
        f"{_OWNER}|{_REPO}|{_PERSON}|{_NAME}-[0-9]+|sub_[0-9a-f-]{{36}}|:17[0-9]{{11}}|{_DIGEST}"
    )

    def __init__(self, text: str, at: int = 0) -> None:
        self._pieces = self._cuts.split(text)
        self._fields = [self._field(found, at) for found in self._cuts.findall(text)]

    @staticmethod
    def _field(found: str, at: int) -> str | int:
        """Which of the values stands here; of a time, how long before the last change it was."""
        if found.startswith(":"):
            return int(found[1:]) - at
        return next(name for name in (_OWNER, _REPO, _PERSON, _NAME, _ID, _DIGEST) if found.startswith(name))

    def write(self, values: dict[str, str], at: int) -> str:
        written = [self._pieces[0]]
        for field, piece in zip(self._fields, self._pieces[1:], strict=True):
            written.append(values[field] if isinstance(field, str) else f":{at + field}")
            written.append(piece)
        return "".join(written)


class Drafts(msgspec.Struct, frozen=True):
    """The drafts of every kind of record."""

    #: By kind: a published submission with its skill, version and alias, each as key and value.
    published: tuple[tuple[tuple[Draft, Draft], ...], ...]
    others: dict[State, tuple[Draft, Draft]]


def records(drafts: Drafts, count: int, stuck: int, now: int) -> Iterator[tuple[str, str]]:
    """Keys and values of `count` submissions and their skills, the oldest first."""
    every = max(count // stuck // PER_SKILL * PER_SKILL, PER_SKILL)
    for number in range(count - 1, -1, -1):
        one = One(number, now - number * EVERY_MS)
        made: Sequence[tuple[Draft, Draft]] = (drafts.others[State.RECEIVED],)
        if number % PER_SKILL == 0:
            made = drafts.published[number // PER_SKILL % len(_KINDS)]
        elif number % every == 1 and number // every < stuck:
            made = (drafts.others[_STUCK[number // every % 3]],)
            one = One(number, one.at - 3_600_000)
        elif number < WAITING:
            one = One(number, now - number * WAITING_MS)
        else:
            made = (drafts.others[_ENDED[one.spread % 100]],)
        values = _values(one)
        for key, value in made:
            yield key.write(values, one.at), value.write(values, one.at)


def _values(one: One) -> dict[str, str]:
    return {
        _OWNER: one.owner,
        _REPO: f"tools-{one.spread % 13}",
        _PERSON: f"person-{one.spread % 4_999}",
        _NAME: one.name,
        _ID: one.id,
        _DIGEST: f"{one.number:064x}",
    }


# What the product makes.


class _Kinds:
    """A source of skills of every kind."""

    async def fetch(self, record: Submission) -> Fetched:
        _, text, licence, agent = _KINDS[int(record.skill_name.rpartition("-")[2])]
        extra = (f"license: {licence}\n" if licence else "") + (f"compatibility: {agent}\n" if agent else "")
        head = f"---\nname: {record.skill_name}\ndescription: {text} For every {EVERYWHERE}.\n{extra}---\n"
        return Fetched((SkillFile("SKILL.md", "100644", f"{head}Do so.\n".encode()),), commit=_COMMIT)


async def make_drafts() -> Drafts:
    """Publish one skill of each kind, in memory; the other states come from the functions that make them."""
    async with env_for(Settings(store="memory:")) as opened:
        env = msgspec.structs.replace(opened, sources=_Kinds())
        published = await run_with_worker_env(env, lambda: _publish(env))
    return Drafts(published, {state: _other(state) for state in (*_STUCK, *dict.fromkeys(_ENDED))})


async def _publish(env: Env) -> tuple[tuple[tuple[Draft, Draft], ...], ...]:
    stop = asyncio.Event()
    worker = asyncio.create_task(run_consumer(env, stop))
    for number in range(len(_KINDS)):
        address = f"https://github.com/{_OWNER}/{_REPO}"
        await submit_repository(address, f"skills/{_NAME}-{number}", by=SubmittedBy(_PERSON))
    async with asyncio.timeout(_PATIENCE_S):
        while (await count_submissions(audiences=EVERYTHING)).by_state[State.PUBLISHED] < len(_KINDS):  # noqa: ASYNC110 - nobody says when
            await asyncio.sleep(0.05)
    stop.set()
    await worker
    entries = (await env.kv.scan("")).items
    return tuple(_published(entries, number) for number in range(len(_KINDS)))


def _published(entries: Sequence[Entry], number: int) -> tuple[tuple[Draft, Draft], ...]:
    """What was written for this skill, but for its attestation and scan report, which no list reads."""
    name = f"{_NAME}-{number}"
    canonical = f"{_OWNER}/{_REPO}/{name}"
    by_key = {entry.key: entry.value.decode() for entry in entries}
    key, value = next(
        (key, value)
        for key, value in by_key.items()
        if key.startswith(SUBMISSIONS.prefix) and f'"skill_name":"{name}"' in value
    )
    record = msgspec.json.decode(value, type=Submission)
    assert record.digest is not None
    wanted = (key, f"skill:{canonical}", f"version:{canonical}:1.0.0", f"skill:alias:{name}:{canonical}")
    texts = ((one, by_key[one].replace(record.digest, _DIGEST)) for one in wanted)
    return tuple((Draft(one), Draft(text, record.updated_at)) for one, text in texts)


def _other(state: State) -> tuple[Draft, Draft]:
    """A record that has gone the usual way to this state."""
    at = 1_790_000_000_000
    created = submission.create(
        submission_id=f"sub_{'0' * 36}",
        identity=Identity("github.com", _OWNER, _REPO, f"skills/{_NAME}-0"),
        repo_url=f"https://github.com/{_OWNER}/{_REPO}",
        skill_name=f"{_NAME}-0",
        submitter=_PERSON,
        step=Step("01m7f61ekdzfbbe70pbfzj8gzv", at - 1_500, f"user:{_PERSON}", "submitted"),
    )
    record = _moved(created, state, at)
    text = msgspec.json.encode(record).decode()
    return Draft(record.key), Draft(text, record.updated_at)


def _moved(created: Submission, state: State, at: int) -> Submission:
    if state is State.RECEIVED:
        return created
    ids = ("01m7f61ekexdf55dx7aeeh42ng-0", "01m7f61ekexdf55dx7aeeh42ng-1")
    held = submission.claim(created, token="token", worker="bench", now=at - 1_400, event_ids=ids)  # noqa: S106
    if state is State.TIER1_SCANNING:
        return held
    step = Step("01m7f61g4arn95at56sabbekv9", at, "worker:bench", "what the scan found decides it")
    claim = held.claim if state.active else None
    return submission.move(held, state, step, claim=claim, digest=_DIGEST, commit=_COMMIT)
