"""The questions that must not grow with the number of records, each as the product asks it: a request to the
application in this process, or a call of the store where there is no page. Nothing is kept between two requests."""

from collections.abc import Awaitable, Callable
from functools import partial
from urllib.parse import urlencode

import msgspec

from bench.postgres_records import COMMON, EVERY_MS, EVERYWHERE, PER_SKILL
from bench.web_store import Forgetful, body_of
from vskill_platform.domain.audience import EVERYTHING
from vskill_platform.domain.states import State
from vskill_platform.env import Env
from vskill_platform.kv.collections import SKILLS, SUBMISSIONS
from vskill_platform.kv.query import Between, In
from vskill_platform.store.statistics import recent_activity
from vskill_platform.submission_store import count_submissions, get_stuck_submissions
from vskill_platform.worker_context import run_with_worker_env

Ask = Callable[[], Awaitable[object]]


class Question(msgspec.Struct, frozen=True):
    """A question to a store of some size."""

    name: str
    ask: Ask
    #: Why its plan does not grow; empty where it is made of others, whose plans are shown.
    because: str = ""


class Place:
    """An application over one environment, with what depends on its size."""

    def __init__(self, env: Env, count: int, now: int) -> None:
        self.env = env
        self.count = count
        self._now = now
        self._app = Forgetful(env)

    def page(self, path: str, **query: str) -> Ask:
        return lambda: body_of(self._app, f"{path}?{urlencode(query)}")

    def call(self, work: Callable[[], Awaitable[object]]) -> Ask:
        return lambda: run_with_worker_env(self.env, work)

    @property
    def middle(self) -> int:
        """A time that half of all submissions are older than."""
        return self._now - self.count * EVERY_MS // 2

    @property
    def one_name(self) -> str:
        """A word that one skill has."""
        return f"{self.count // 2 // PER_SKILL * PER_SKILL:07d}"

    async def cursor(self, prefix: str, order: str, **where: In) -> str:
        """Where a list stands in the middle."""
        page = await self.env.kv.select(
            prefix,
            where={**where, order: Between(most=self.middle)},
            order_by=order,
            descending=True,
            limit=1,
            audiences=EVERYTHING,
        )
        assert page.after is not None
        return page.after


async def questions(at: Place) -> tuple[Question, ...]:
    """Every question, in the same order whatever the size."""
    states = In(tuple(sorted(State)))
    deep_queue = await at.cursor(SUBMISSIONS.prefix, "updated_at", state=states)
    deep_skills = await at.cursor(SKILLS.prefix, "listed_at")
    return (
        Question("queue page, HTML", at.page("/queue")),
        Question("queue page, HTML, in the middle", at.page("/queue", after=deep_queue)),
        Question(
            "queue page, JSON",
            at.page("/api/v1/submissions"),
            "Each state's latest come from one descending run through its index, which stops at the page's length.",
        ),
        Question(
            "queue page, JSON, in the middle",
            at.page("/api/v1/submissions", after=deep_queue),
            "The cursor is a place in the index: what stands before it is never read.",
        ),
        Question(
            "queue page, search for a word of every address",
            at.page("/api/v1/submissions", q="github"),
            "No name has it, which the index of names says at once; of a word that all have, a walk stops when it has "
            "enough.",
        ),
        Question("queue health", at.page("/api/v1/queue/health")),
        Question(
            "stats",
            at.call(partial(count_submissions, audiences=EVERYTHING)),
            "One row for each state, kept by the writes themselves.",
        ),
        Question("stats, JSON", at.page("/api/v1/submissions/stats")),
        Question(
            "stats of the last hour",
            at.call(partial(recent_activity, audiences=EVERYTHING)),
            "The last hour's ends, from the end of each state's index; older ones are not read.",
        ),
        Question("stats of the last hour, JSON", at.page("/api/v1/queue/stats")),
        Question(
            "stuck",
            at.call(get_stuck_submissions),
            "The index of the active states up to the threshold: what is stuck, and nothing else.",
        ),
        Question(
            "search, one hit",
            at.page("/api/v1/skills/search", q=at.one_name),
            "The word leads to its one row.",
        ),
        Question(
            "search, a common word",
            at.page("/api/v1/skills/search", q=COMMON),
            "Names alone give as many as are weighed, so nothing else is read; only collecting their places grows.",
        ),
        Question(
            "search, a word of every skill",
            at.page("/api/v1/skills/search", q=EVERYWHERE),
            "No name has it, which the index of names says at once; of a word that all have, a walk stops when it has "
            "enough.",
        ),
        Question(
            "list, first page",
            at.page("/api/v1/skills"),
            "A run through the index of listed skills, which stops at the page's length.",
        ),
        Question(
            "list, in the middle",
            at.page("/api/v1/skills", after=deep_skills),
            "The cursor is a place in the index: what stands before it is never read.",
        ),
        Question(
            "list, a category",
            at.page("/api/v1/skills", category="testing"),
            "The category's own run through its index.",
        ),
        Question(
            "list, a category and an agent",
            at.page("/api/v1/skills", category="testing", agent="claude"),
            "One of them leads and the other is looked at on the way: it grows only where few skills have both.",
        ),
        Question("list, HTML", at.page("/skills")),
        Question(
            "facets",
            at.page("/api/v1/skills/facets"),
            "One row for each value of each facet, kept by the writes themselves.",
        ),
    )
