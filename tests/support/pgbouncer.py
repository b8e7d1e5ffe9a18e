"""A real PgBouncer in transaction mode before the tests' PostgreSQL, with few connections, so that statements of one client
really meet different ones. It ends with the process."""

import atexit
import os
import tempfile
import time
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from tests.support import lifetimes
from tests.support.patience import PATIENCE_S
from tests.support.ports import answers, free_port
from tests.support.postgres import ORDINARY_USER, server
from tools import programs

#: With this variable, tests of the contracts reach PostgreSQL through it (`make test-debian`).
VARIABLE = "THROUGH_PGBOUNCER"

_CONFIGURATION = """
[databases]
* = host=127.0.0.1 port={server} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 500
server_round_robin = 1
"""


def through(location: str) -> str:
    """The same database, by way of the pooler where these tests are to go through it."""
    if VARIABLE not in os.environ:
        return location
    parts = urlsplit(location)
    there = parts._replace(netloc=f"postgres@127.0.0.1:{_port()}", query="pool_mode=transaction")
    return there.geturl()


@cache
def _port() -> int:
    """Where the one pooler of this process listens."""
    program = programs.find("pgbouncer")
    assert program is not None, "run `make pgbouncer`"
    folder, port = Path(tempfile.mkdtemp(prefix="vskill-pgbouncer-")), free_port()
    folder.chmod(0o755)
    (folder / "ini").write_text(_CONFIGURATION.format(server=server().port, port=port))
    with (folder / "log").open("wb") as log:
        started = lifetimes.start(
            [program, folder / "ini"],
            user=ORDINARY_USER if os.geteuid() == 0 else None,
            stderr=log,
            env={"LD_LIBRARY_PATH": programs.libraries("pgbouncer")},
        )
    atexit.register(lifetimes.end, started)
    deadline = time.monotonic() + PATIENCE_S
    while not answers(port):
        assert started.poll() is None, (folder / "log").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return port
