"""Reports of both tiers, kept by what they are about: `scan:{digest}:{ruleset}`, and `judge:` with model and rubric
behind it. The same content is scanned and judged once, however often and wherever it is submitted.

Only complete scans and real answers are kept: a scan that timed out and a judge that was down say nothing about the
content, so the next one asks again. Reports never expire; other rules, another model or rubric are other keys.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

import msgspec

from vskill_core.content import SkillFile, digest_of_files
from vskill_core.findings import JudgeReport, JudgeStatus, ScanStatus, StaticReport
from vskill_platform.domain import keys
from vskill_platform.records import decode_readable, persist
from vskill_platform.tiers.contract import Judge
from vskill_platform.worker_context import Env, require_env

T = TypeVar("T", bound=msgspec.Struct)


async def scan_once(files: Sequence[SkillFile], digest: str) -> StaticReport:
    """The stored report of these bytes by the current rules, or a scan whose report is stored if it is complete."""
    env = require_env("scanner")
    key = keys.scan(digest, env.scanner.ruleset)
    async with env.turns.turn(key):
        found = await _read(env, key, StaticReport)
        env.metrics.scans.labels("cached" if found else "scanned").inc()
        if found is not None:
            return found
        report = await env.scanner.scan(files)
        if report.status is ScanStatus.COMPLETE:
            await _keep(env, key, report)
        return report


async def get_scan(digest: str, ruleset: str) -> StaticReport | None:
    return await _read(require_env("kv"), keys.scan(digest, ruleset), StaticReport)


class NamedJudge(Judge, Protocol):
    """A judge whose answers can be told from another's."""

    model: str
    rubric: str
    #: In metrics: `first` or `second`.
    place: str


class CachedJudge:
    """A judge that is asked once about the same content, findings, model and rubric."""

    def __init__(self, judge: NamedJudge) -> None:
        self._judge = judge

    async def review(self, files: Sequence[SkillFile], report: StaticReport) -> JudgeReport:
        env = require_env("judge")
        digest = digest_of_files(files)
        key = keys.judge(digest, report.ruleset, self._judge.model, self._judge.rubric)
        async with env.turns.turn(key):
            found = await _read(env, key, JudgeReport)
            if found is not None:
                env.metrics.judge_calls.labels(self._judge.place, "cached").inc()
                return found
            answer = await self._judge.review(files, report)
            if answer.status is JudgeStatus.ANSWERED:
                await _keep(env, key, answer)
            return answer


async def _read(env: Env, key: str, kind: type[T]) -> T | None:
    """What is stored, or None; a report that this version cannot read is made anew, and said."""
    entry = await env.kv.get(key)
    readable = decode_readable([entry], kind, "cached_report") if entry is not None else []
    return next(iter(readable), None)


async def _keep(env: Env, key: str, report: msgspec.Struct) -> None:
    value = msgspec.json.encode(report)
    await persist(lambda: env.kv.put(key, value))
