"""Tier 2: a language model behind an OpenAI-compatible address reads what the static scan let through.

It answers, or it is down: a time-out, an error, an answer of the wrong shape or one through which the skill spoke
are all the same to the decision (`JUDGE_DOWN`). Why is said in the log and counted, and stored nowhere (B2). The
time budget holds for everything together, with the one retry and the one fallback. After three failures of the
service in a row the judge is left alone for a while; refused answers do not count for that, because a skill can
provoke them, and must not be able to switch the judge off for others.
"""

import asyncio
import secrets
import ssl
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Any

import httpx2
import msgspec
from structlog.typing import FilteringBoundLogger

from vskill_core.content import SkillFile
from vskill_core.errors import Shortage
from vskill_core.findings import JUDGE_DOWN, JudgeReport, StaticReport
from vskill_core.foreign_json import read_json
from vskill_platform.ledger.clock import Clock, TimeLimit
from vskill_platform.machine.shortages import MACHINE
from vskill_platform.observing.metrics import Metrics
from vskill_platform.settings import Settings
from vskill_platform.tiers.judge_answer import AnswerRefused, read_answer
from vskill_platform.tiers.rubric import RUBRIC, Question, make_question, too_many_criticals

#: An answer larger than this is none.
MAX_ANSWER_BYTES = 256 * 1024
CONNECT_TIMEOUT_S = 5.0
#: Some servers cut a question that is longer than the model's context, and answer all the same. No text has so many
#: bytes to a token: such an answer is about a part.
MOST_BYTES_PER_TOKEN = 12
CONNECTIONS = 10
#: After so many failures of the service in a row it is left alone for so long.
FAILURES_TO_OPEN = 3
OPEN_S = 30.0

#: How a server says that it does not know a part of the request.
REFUSES_FORM = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
        HTTPStatus.NOT_IMPLEMENTED,
    }
)
#: The connection broke: asking once more may help.
CONNECTION_ERRORS = (httpx2.NetworkError, httpx2.RemoteProtocolError, httpx2.ConnectTimeout)


class ServiceFailed(Exception):
    """The judge could not be asked; `kind` is for metrics."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


class _FormRefused(Exception):
    """The server does not take the request in this form."""


class _Message(msgspec.Struct, frozen=True):
    content: str


class _Choice(msgspec.Struct, frozen=True):
    message: _Message
    finish_reason: str | None = None


class _Completion(msgspec.Struct, frozen=True):
    """The part of a chat completion that is read."""

    choices: tuple[_Choice, ...]
    #: not every server fills it in, or in the same way
    usage: Any = None


class JudgeAddress(msgspec.Struct, frozen=True):
    """Where a judge is, and how it is asked."""

    #: in metrics and logs: `first` or `second`
    place: str
    url: str
    model: str
    api_key: str = ""


class TokenCount:
    """What one question cost, by the service's own count; questions that were asked twice cost both."""

    def __init__(self) -> None:
        self.prompt = 0
        self.answer = 0

    def add(self, usage: Any) -> None:
        """What a server says it has used; anything but two counts says nothing."""
        said = usage if isinstance(usage, dict) else {}
        counts = [said.get("prompt_tokens"), said.get("completion_tokens")]
        prompt, answer = (one if isinstance(one, int) and one > 0 else 0 for one in counts)
        self.prompt += prompt
        self.answer += answer


class JudgeReply(msgspec.Struct, frozen=True):
    """What came of one question."""

    report: JudgeReport
    #: `answered`, `skipped`, or the kind of failure, as in metrics
    outcome: str
    tokens: TokenCount
    #: why there is no answer
    problem: str = ""


class Breaker:
    """Leaves a service alone after repeated failures, then lets one question through to see."""

    def __init__(self, failures: int = FAILURES_TO_OPEN, open_s: float = OPEN_S) -> None:
        self._limit = failures
        self._open_s = open_s
        self._failures = 0
        self._until = 0.0

    def lets_through(self, now: float) -> bool:
        if self._failures < self._limit:
            return True
        if now < self._until:
            return False
        # One question at a time, until one succeeds.
        self._until = now + self._open_s
        return True

    def failed(self, now: float) -> None:
        self._failures += 1
        if self.open:
            self._until = now + self._open_s

    def succeeded(self) -> None:
        self._failures = 0

    @property
    def open(self) -> bool:
        return self._failures >= self._limit


class HttpJudge:
    """One model at one address."""

    rubric = RUBRIC

    def __init__(
        self,
        client: httpx2.AsyncClient,
        address: JudgeAddress,
        settings: Settings,
        *,
        clock: Clock,
        log: FilteringBoundLogger,
        metrics: Metrics,
        new_marker: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        self.model = address.model
        self.place = address.place
        self._client = client
        self._url = _endpoint(address.url)
        self._api_key = address.api_key
        self._settings = settings
        self._clock = clock
        self._log = log
        self._metrics = metrics
        self._new_marker = new_marker
        self._breaker = Breaker()
        #: Turns true once the server has refused a JSON schema and taken a plain JSON object.
        self._plain = False

    async def review(self, files: Sequence[SkillFile], report: StaticReport) -> JudgeReport:
        """The judge's report, or `JUDGE_DOWN`; it never raises for what the judge does, but Shortage where we slept."""
        return (await self.ask(files, report)).report

    async def ask(self, files: Sequence[SkillFile], report: StaticReport) -> JudgeReply:
        """As `review`, with why there is no answer, and what the question cost."""
        tokens = TokenCount()
        if too_many_criticals(report):
            return self._down("too_large", "there are too many critical findings to ask about", tokens)
        if not self._breaker.lets_through(self._clock.monotonic()):
            reason = "it failed repeatedly and is left alone for a while"
            self._metrics.judge_calls.labels(self.place, "skipped").inc()
            self._log.info("judge skipped", reason=reason, judge=self.place)
            return JudgeReply(JUDGE_DOWN, "skipped", tokens, reason)
        try:
            answered = await self._within_budget(files, report, tokens)
        except AnswerRefused as refused:
            self._breaker.succeeded()
            return self._down(refused.kind, str(refused), tokens)
        except ServiceFailed as failed:
            self._breaker.failed(self._clock.monotonic())
            return self._down(failed.kind, str(failed), tokens)
        finally:
            self._count_tokens(tokens)
        self._breaker.succeeded()
        self._metrics.judge_circuit_open.labels(self.place).set(0)
        self._metrics.judge_calls.labels(self.place, "answered").inc()
        self._metrics.judge_last_success.labels(self.place).set(self._clock.now() / 1000)
        return JudgeReply(answered, "answered", tokens)

    def _count_tokens(self, tokens: TokenCount) -> None:
        self._metrics.judge_tokens.labels(self.place, "prompt").inc(tokens.prompt)
        self._metrics.judge_tokens.labels(self.place, "answer").inc(tokens.answer)

    def _down(self, kind: str, reason: str, tokens: TokenCount) -> JudgeReply:
        self._metrics.judge_calls.labels(self.place, kind).inc()
        self._metrics.judge_circuit_open.labels(self.place).set(int(self._breaker.open))
        self._log.warning(
            "judge is down",
            kind=kind,
            reason=reason,
            judge=self.place,
            model=self.model,
            circuit_open=self._breaker.open,
        )
        return JudgeReply(JUDGE_DOWN, kind, tokens, reason)

    async def _within_budget(
        self, files: Sequence[SkillFile], report: StaticReport, tokens: TokenCount
    ) -> JudgeReport:
        budget_ms = self._settings.judge_budget_ms
        limit = TimeLimit(budget_ms / 1000)
        try:
            async with limit:
                return await self._ask(files, report, tokens)
        except TimeoutError:
            failed = ServiceFailed("timeout", f"no answer within {budget_ms} ms")
        except ServiceFailed as error:
            failed = error
        if limit.slept and failed.kind in {"timeout", "unreachable"}:
            raise Shortage("This machine slept while the judge was asked.", host=MACHINE, passing=True)
        raise failed

    async def _ask(self, files: Sequence[SkillFile], report: StaticReport, tokens: TokenCount) -> JudgeReport:
        # Up to a megabyte of text is cut and compared: not on the event loop.
        question = await asyncio.to_thread(
            make_question,
            files,
            report,
            marker=self._new_marker(),
            max_bytes=self._settings.judge_max_bytes,
        )
        content = await self._completion(question, tokens)
        answered = await asyncio.to_thread(read_answer, content, question, self.model)
        sent = sum(len(message["content"].encode()) for message in question.messages)
        if tokens.prompt and sent > tokens.prompt * MOST_BYTES_PER_TOKEN:
            fix = "give the model a longer context, or lower VSKILL_JUDGE_MAX_BYTES"
            self._log.warning(
                "judge read less than it was sent",
                judge=self.place,
                sent_bytes=sent,
                read_tokens=tokens.prompt,
                fix=fix,
            )
            return msgspec.structs.replace(answered, partial=True)
        return answered

    async def _completion(self, question: Question, tokens: TokenCount) -> str:
        """Asked for a JSON schema first, and for a plain JSON object where the server refuses that."""
        if not self._plain:
            try:
                return await self._post_twice(_body(self.model, question, plain=False), tokens)
            except _FormRefused:
                self._log.info("judge refuses a JSON schema", then="it is asked for a JSON object")
        try:
            content = await self._post_twice(_body(self.model, question, plain=True), tokens)
        except _FormRefused as refused:
            # A skill that is longer than what the model can read is refused so; others must still be judged.
            raise AnswerRefused("http_error", str(refused)) from None
        self._plain = True
        return content

    async def _post_twice(self, body: dict[str, Any], tokens: TokenCount) -> str:
        """Once more where the connection broke."""
        try:
            return await self._post(body, tokens)
        except CONNECTION_ERRORS as error:
            self._log.info("judge asked again", error=type(error).__name__)
        try:
            return await self._post(body, tokens)
        except CONNECTION_ERRORS as error:
            raise ServiceFailed("unreachable", f"the connection failed: {type(error).__name__}") from error

    async def _post(self, body: dict[str, Any], tokens: TokenCount) -> str:
        try:
            async with self._client.stream(
                "POST", self._url, content=msgspec.json.encode(body), headers=self._headers()
            ) as response:
                _check_head(response)
                data = await _read_limited(response)
        except CONNECTION_ERRORS:
            raise
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise ServiceFailed("unreachable", f"the request failed: {type(error).__name__}") from error
        return _content(data, tokens)

    def _headers(self) -> dict[str, str]:
        headers = {
            "content-type": "application/json",
            "accept": "application/json",
            "accept-encoding": "identity",
        }
        if self._api_key:
            headers["authorization"] = f"Bearer {self._api_key}"
        return headers


def make_client(url: str, settings: Settings) -> httpx2.AsyncClient:
    """A client that goes to the address that was set and nowhere else. It reads certificates: not on the loop."""
    budget_s = settings.judge_budget_ms / 1000
    secure = url.startswith("https:")
    return httpx2.AsyncClient(
        verify=ssl.create_default_context() if secure else False,
        follow_redirects=False,
        trust_env=False,
        # The budget limits the whole question, and does not count sleep.
        timeout=httpx2.Timeout(None, connect=min(CONNECT_TIMEOUT_S, budget_s)),
        limits=httpx2.Limits(max_connections=CONNECTIONS),
    )


def _endpoint(base: str) -> str:
    base = base.rstrip("/")
    return base if base.endswith("/chat/completions") else f"{base}/chat/completions"


def _body(model: str, question: Question, *, plain: bool) -> dict[str, Any]:
    """The plain form also leaves out what some servers refuse for some models."""
    body: dict[str, Any] = {"model": model, "messages": question.messages, "stream": False}
    if plain:
        return {**body, "response_format": {"type": "json_object"}}
    schema = {"name": "skill_review", "strict": True, "schema": question.schema}
    return {**body, "temperature": 0, "response_format": {"type": "json_schema", "json_schema": schema}}


def _check_head(response: httpx2.Response) -> None:
    """Status, type and encoding, before a byte of the body is read."""
    status = response.status_code
    if status in REFUSES_FORM:
        raise _FormRefused(f"the judge answers with status {status}")
    if status != HTTPStatus.OK:
        raise ServiceFailed("http_error", f"the judge answers with status {status}")
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ServiceFailed("not_json", "the answer's content type is not application/json")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise ServiceFailed("not_json", "the answer is compressed, which was not asked for")


async def _read_limited(response: httpx2.Response) -> bytes:
    data = bytearray()
    async for chunk in response.aiter_raw():
        data += chunk
        if len(data) > MAX_ANSWER_BYTES:
            raise ServiceFailed("too_large", f"the answer is larger than {MAX_ANSWER_BYTES} bytes")
    return bytes(data)


def _content(data: bytes, tokens: TokenCount) -> str:
    """The text that the model wrote."""
    try:
        completion = read_json(data, _Completion)
    except msgspec.DecodeError as error:
        raise ServiceFailed("not_json", f"the answer is not a chat completion: {error}") from None
    tokens.add(completion.usage)
    if len(completion.choices) != 1:
        raise ServiceFailed("not_json", "the answer does not hold exactly one choice")
    choice = completion.choices[0]
    if choice.finish_reason not in {None, "stop"}:
        raise AnswerRefused("invalid", "the model did not finish its answer")
    return choice.message.content
