"""The house rules for the product's code and its tests: each is broken here once in every way that we know."""

import pytest

from tools.code_rules import PATCHES, READ_EVERYTHING, check_module, check_patches, check_template
from tools.files import ROOT

DOCSTRING = '"""What it is for."""\n'


def messages(code: str, path: str = "src/vskill_platform/queue/consumer.py") -> list[str]:
    return [str(problem) for problem in check_module(path, DOCSTRING + code)]


@pytest.mark.parametrize(
    "code",
    [
        "loop.run_in_executor(None, f)",
        "asyncio.get_running_loop().run_in_executor(p, f)",
        "x = a.b.run_in_executor",
    ],
)
def test_run_in_executor_is_refused_whatever_the_loop_is_called(code):
    (message,) = messages(code)
    assert message.startswith(
        "src/vskill_platform/queue/consumer.py:2: run_in_executor: it loses the context"
    )


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.environ['X']",
        "import os as system\nsystem.environ.get('X')",
        "from os import environ as e\ne['X']",
        "import os\nos.getenv('X')",
        "def f():\n    from os import getenv\n    getenv('X')",
    ],
)
def test_only_settings_reads_the_process_environment(code):
    (message,) = messages(code)
    assert "only settings.py reads the process environment" in message
    assert messages(code, "src/vskill_platform/settings.py") == []


@pytest.mark.parametrize(
    "code",
    [
        "import time\ntime.time()",
        "from time import time_ns\ntime_ns()",
        "import datetime\ndatetime.datetime.now(datetime.UTC)",
        "from datetime import datetime\nf = datetime.utcnow",
        "from datetime import date as d\nd.today()",
        "import uuid\nuuid.uuid4()",
    ],
)
def test_only_the_clock_reads_the_wall_and_makes_ids(code):
    (message,) = messages(code)
    assert "come from the environment's clock" in message
    assert messages(code, "src/vskill_platform/ledger/clock.py") == []


@pytest.mark.parametrize(
    "code",
    [
        "import asyncio\nawait_me = asyncio.to_thread(f)",
        "import time\ntime.perf_counter()",
        "env.clock.time()",
        "from .settings import environ\nenviron",
        "import uuid\nuuid.uuid5(uuid.NAMESPACE_URL, 'x')",
        "environ = {}\nenviron['X']",
    ],
)
def test_what_only_looks_similar_passes(code):
    assert messages(code) == []


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess\nsubprocess.Popen(['x'])",
        "from subprocess import Popen as start\nwith start(['x']): pass",
        "import asyncio\nasync def f(): await asyncio.create_subprocess_exec('x')",
        "import os\nos.fork()",
        "import multiprocessing\nmultiprocessing.get_context('fork')",
    ],
)
def test_a_test_starts_processes_in_the_one_way_that_also_ends_them(code):
    (message,) = messages(code, "tests/queue/test_x.py")
    assert "so that it ends with its test" in message
    assert messages(code, "tests/support/lifetimes.py") == []


@pytest.mark.parametrize(
    "code", ["import time\ntime.thread_time()", "from time import perf_counter as now\nnow()"]
)
def test_a_test_measures_in_the_one_way_that_puts_it_into_the_group_of_its_own(code):
    (message,) = messages(code, "tests/queue/test_x.py")
    assert "make test-machine" in message
    assert messages(code, "tests/conftest.py") == []


def test_a_call_that_waits_for_its_process_and_the_name_of_its_type_pass():
    code = "import subprocess\nsubprocess.run(['x'])\ndef f(x: subprocess.Popen[str]): pass"
    assert messages(code, "tests/queue/test_x.py") == []


@pytest.mark.parametrize("text", ["", "x = 1\n", '"""   """\n', "# a comment\n"])
def test_a_module_of_the_product_without_a_docstring_is_reported(text):
    (problem,) = check_module("src/vskill_platform/new.py", text)
    assert "begins without a docstring" in problem.message


def test_code_outside_the_product_is_not_bound_by_the_house_rules():
    assert messages("import time\ntime.time()", "bench/run.py") == []


@pytest.mark.parametrize(
    "code",
    [
        "monkeypatch.setattr('vskill_platform.ledger.kv.postgres.STEP', 1)",
        "from vskill_platform.store import attempts\nmonkeypatch.setattr(attempts, 'MOST_PAIR', 3)",
        "import vskill_platform.web.streams.follower as hub\nmonkeypatch.setattr(hub.Hub, '_batch', f)",
        "monkeypatch.setattr(env.kv, 'commit', f)",
        "with monkeypatch.context() as patch:\n    patch.setattr(type(env.kv), 'changes', f)",
        "from unittest import mock",
        "import unittest.mock",
        "from unittest.mock import patch",
        "from vskill_platform.domain import submission\nsubmission.CLAIM_MS = 1",
        "broker = import_module('vskill_platform.ledger.broker.contract')\nbroker.Message.extend.__defaults__ = (1,)",
    ],
)
@pytest.mark.parametrize("path", ["tests/test_consumer.py", "simulator/world.py"])
def test_a_test_that_patches_the_product_is_reported(code, path):
    (message,) = messages(code, path)
    assert "patches the product: pass the limit as an argument" in message


@pytest.mark.parametrize(
    "code",
    [
        "import sqlite3\nmonkeypatch.setattr(sqlite3, 'sqlite_version_info', (3, 26, 0))",
        "from argon2 import PasswordHasher\nmonkeypatch.setattr(PasswordHasher, 'hash', f)",
        "monkeypatch.setenv('VSKILL_STORE', 'memory:')",
        "scanner.open = f",
    ],
)
def test_a_test_may_replace_what_is_not_the_products(code):
    assert messages(code, "tests/test_consumer.py") == []


@pytest.mark.parametrize("path", PATCHES)
def test_a_file_that_may_patch_the_product_still_does(path):
    """An exception that nobody needs any more goes."""
    assert list(check_patches(path, (ROOT / path).read_text("utf-8")))


ROLE = "from vskill_platform.store.people.accounts import Role\n"


@pytest.mark.parametrize(
    "code",
    [
        "if principal.is_admin: ...\n",
        "shown = viewer.is_reviewer\n",
        "principal.require_scope(scope)\n",
        ROLE + "if user.role is Role.ADMIN: ...\n",
    ],
)
def test_only_actions_decide_who_may(code):
    text = DOCSTRING + code
    for path in ("web/pages/new.py", "cli/new.py", "queue/new.py"):
        (problem,) = check_module(f"src/vskill_platform/{path}", text)
        assert "decides who may outside actions/" in problem.message
    assert list(check_module("src/vskill_platform/actions/new.py", text)) == []


def test_a_page_may_ask_an_action_whom_it_allows():
    text = DOCSTRING + ROLE + "def show(principal, role: Role): return APPROVE.allows(principal)\n"
    assert list(check_module("src/vskill_platform/web/pages/new.py", text)) == []


def test_a_template_asks_for_no_role():
    path = "src/vskill_platform/web/templates/new.html"
    (problem,) = check_template(path, "<p>\n{% if principal.is_admin %}")
    assert problem.line == 2 and "principal.is_admin" in problem.message
    assert list(check_template(path, "{% if principal.account %}{% if offers_admin %}")) == []


@pytest.mark.parametrize(
    "code",
    [
        "from vskill_platform.domain.people.namespace import EVERYTHING",
        "from vskill_platform.domain.people.namespace import EVERYTHING as ALL",
        "from vskill_platform.domain.people.namespace import Everything\nx = Everything.EVERYTHING",
        "from vskill_platform.domain import audience\naudience.EVERYTHING",
        "from vskill_platform.queue.health import EVERYTHING",
        "import vskill_platform.queue.health as health\nhealth.EVERYTHING",
    ],
)
def test_only_listed_modules_read_whatever_the_audience_is(code):
    for path in (
        "src/vskill_platform/web/pages/skills/skills.py",
        "src/vskill_platform/actions/skills/catalogue.py",
    ):
        (message,) = messages(code, path)
        assert "EVERYTHING: reads whatever its audience is" in message
    assert messages(code, "src/vskill_platform/queue/health.py") == []


def test_a_module_that_needs_everything_no_more_is_unlisted():
    (message,) = messages("x = 1", "src/vskill_platform/queue/health.py")
    assert "remove it from tools/code_rules.py" in message
    assert all(
        len(reason) > 10 for name, reason in READ_EVERYTHING.items() if name != "domain/people/namespace.py"
    )
