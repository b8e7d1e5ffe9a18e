"""Traces: nothing without the setting; with it, a collector gets a span for each request, submission and job."""

import asyncio
import gzip
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.envs import open_test_env, run_until_quiet, submit_skill
from tests.support.patience import PATIENCE_S
from vskill_core.errors import InvalidSettings
from vskill_platform.bootstrap import env_for
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.observing import telemetry
from vskill_platform.observing.telemetry import NoTracing
from vskill_platform.queue.jobs import Job, JobState
from vskill_platform.queue.schedule import run_job
from vskill_platform.settings import Settings
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio


class Collector:
    """Takes what exporters send."""

    def __init__(self) -> None:
        self.spans: list[tuple[str, dict[str, str]]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                collector.take(self.path, body)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                """Nothing on the console."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, path: str, body: bytes) -> None:
        assert path == "/v1/traces"
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    values = {
                        one.key: one.value.string_value or str(one.value.int_value) for one in span.attributes
                    }
                    self.spans.append((span.name, values))

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def collector() -> Iterator[Collector]:
    found = Collector()
    found.start()
    yield found
    found.stop()


async def test_every_unit_of_work_is_a_span_with_its_ids(tmp_path: Path, collector: Collector):
    async def work(state: JobState) -> JobState:
        return state

    async with open_test_env("memory", tmp_path, clock=SystemClock(), otlp_endpoint=collector.url) as env:
        submitted = (await submit_skill("traced")).submission
        assert submitted is not None
        await run_until_quiet(env)
        await run_job(Job("traced-job", "for this test", 1_000, 1_000, "", work))
        transport = httpx2.ASGITransport(create_app(env))
        async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as client:
            await client.get("/healthz", headers={"x-request-id": "request-7"})
    spans = dict(collector.spans)
    assert spans["submission"] == {"submission_id": submitted.id, "run": "1"}
    assert spans["job"] == {"job": "traced-job"}
    assert spans["request"]["request_id"] == "request-7"
    assert spans["request"]["path"] == "/healthz"


@pytest.mark.slow
async def test_a_collector_that_is_away_disturbs_nothing(tmp_path: Path):
    """Work goes on, and so does the end of the process."""
    async with asyncio.timeout(PATIENCE_S):
        async with open_test_env(
            "memory", tmp_path, clock=SystemClock(), otlp_endpoint="http://127.0.0.1:9"
        ) as env:
            await submit_skill("untraced")
            assert await run_until_quiet(env) == 1


async def test_without_the_setting_there_is_nothing():
    async with env_for(Settings(store="memory:")) as env:
        assert isinstance(env.tracing, NoTracing)
        with env.tracing.span("anything", id="x"):
            pass


def test_without_the_setting_nothing_is_imported():
    """Start-up pays nothing for an extra that is not used."""
    program = (
        "import asyncio, sys\n"
        "from vskill_platform.bootstrap import env_for\n"
        "from vskill_platform.settings import Settings\n"
        "async def main():\n"
        "    async with env_for(Settings(store='memory:')): pass\n"
        "asyncio.run(main())\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    assert done.stdout.strip() == "[]"


async def test_a_missing_package_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(InvalidSettings, match=r"VSKILL_OTLP_ENDPOINT .* extra `telemetry` is not installed"):
        async with env_for(Settings(store="memory:", otlp_endpoint="http://127.0.0.1:4318")):
            pass
    assert telemetry.TRACES_PATH == "/v1/traces"
