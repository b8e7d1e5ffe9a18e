"""A real git host on loopback: `git http-backend` behind a small threaded HTTP server, and repositories that tests
build with git's own plumbing.

`GitServer` can be told to misbehave: to hang, to answer with an error, to redirect, to drip, to end in the middle. It
can also run as a process of its own (`python -m tests.support.git_server FOLDER`), which prints its port. It asks for a
password where `private` says so.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

#: Path to content, or to (mode, content); a submodule's content is the commit's id.
Files = Mapping[str, bytes | str | tuple[str, bytes | str]]

_ADVERTISED = "application/x-git-upload-pack-advertisement"

GIT_ENV = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "t",
    "GIT_AUTHOR_EMAIL": "t@example.org",
    "GIT_COMMITTER_NAME": "t",
    "GIT_COMMITTER_EMAIL": "t@example.org",
}


def git(folder: Path, *arguments: str, feed: bytes = b"") -> str:
    """Git's own plumbing, for building repositories."""
    done = subprocess.run(
        ["git", *arguments], cwd=folder, input=feed, env=GIT_ENV, capture_output=True, check=False
    )
    if done.returncode:
        raise AssertionError(f"git {arguments}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode(errors="replace").strip()


class Repo:
    """A bare repository that is served."""

    def __init__(self, folder: Path, branch: str = "main") -> None:
        self.folder = folder
        self.branch = branch
        folder.mkdir(parents=True)
        git(folder, "init", "--quiet", "--bare", f"--initial-branch={branch}")

    def commit(self, files: Files, message: str = "change") -> str:
        """A commit with exactly these files, on the default branch."""
        git(self.folder, "fast-import", "--quiet", "--force", feed=_stream(self.branch, files, message))
        return self.head()

    def commit_tree(self, tree: str) -> str:
        """A commit of a tree that was made by hand."""
        commit = git(self.folder, "commit-tree", "-m", "made by hand", tree)
        git(self.folder, "update-ref", f"refs/heads/{self.branch}", commit)
        return commit

    def blob(self, content: bytes) -> str:
        return git(self.folder, "hash-object", "-w", "--stdin", feed=content)

    def tree(self, entries: list[tuple[str, str, str, bytes]]) -> str:
        """A tree of (mode, kind, id, name): anything that git would store, whatever a checkout would say to it."""
        feed = b"".join(
            f"{mode} {kind} {number}\t".encode() + name + b"\0" for mode, kind, number, name in entries
        )
        return git(self.folder, "mktree", "-z", "--missing", feed=feed)

    def head(self) -> str:
        return git(self.folder, "rev-parse", f"refs/heads/{self.branch}")

    def config(self, key: str, value: str) -> None:
        git(self.folder, "config", key, value)


def skill_md(name: str, body: str = "", version: str | None = None) -> bytes:
    lines = [f"name: {name}", f"description: The skill {name}, for tests."]
    if version is not None:
        lines.append(f"version: {version}")
    return ("---\n" + "\n".join(lines) + f"\n---\n# {name}\n\n{body}\n").encode()


def _stream(branch: str, files: Files, message: str) -> bytes:
    """What `git fast-import` reads; a content that occurs often is one blob."""
    parts: list[bytes] = []
    marks: dict[bytes, int] = {}
    changes: list[bytes] = []
    for path, given in files.items():
        mode, content = given if isinstance(given, tuple) else ("100644", given)
        data = content.encode() if isinstance(content, str) else content
        if mode == "160000":
            changes.append(b"M 160000 %s %s\n" % (data, _quoted(path)))
            continue
        if data not in marks:
            marks[data] = len(marks) + 1
            parts.append(b"blob\nmark :%d\ndata %d\n%s\n" % (marks[data], len(data), data))
        changes.append(b"M %s :%d %s\n" % (mode.encode(), marks[data], _quoted(path)))
    text = message.encode()
    head = b"commit refs/heads/%s\ncommitter t <t@example.org> %d +0000\ndata %d\n%s\n" % (
        branch.encode(),
        time.time(),
        len(text),
        text,
    )
    return b"".join([*parts, head, b"deleteall\n", *changes, b"\n"])


def _quoted(path: str) -> bytes:
    raw = path.encode("utf-8", "surrogateescape")
    return b'"' + raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'


class GitServer:
    """Serves the repositories below a folder, and counts what it was asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        #: Every request's path with its query.
        self.requests: list[str] = []
        #: By the beginning of a path: an HTTP status, `hang`, `drip`, `cut`, or the address to redirect to.
        self.faults: dict[str, int | str] = {}
        #: By the beginning of a path: the header `Authorization` that it asks for.
        self.private: dict[str, str] = {}
        #: Every such header that arrived, with the path.
        self.authorized: list[tuple[str, str]] = []
        #: Called while a request with such a header waits for its answer.
        self.on_authorized: Callable[[], None] = lambda: None
        self._released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def rewrite(self, host: str = "github.com") -> str:
        """The setting that lets this server stand in for a public host."""
        return f"https://{host}/={self.url}"

    def repo(self, name: str, files: Files | None = None, branch: str = "main") -> Repo:
        """A new repository `owner/name`."""
        repo = Repo(self.root / f"{name}.git", branch)
        if files is not None:
            repo.commit(files)
        return repo

    def asked(self, part: str) -> int:
        """How many requests had this in their path."""
        return sum(part in one for one in self.requests)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def wait_released(self, seconds: float) -> bool:
        return self._released.wait(seconds)


@contextmanager
def git_server(root: Path) -> Iterator[GitServer]:
    server = GitServer(root)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _handler(server: GitServer) -> type[BaseHTTPRequestHandler]:  # noqa: C901 - one small class
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._serve(b"")

        def do_POST(self) -> None:
            self._serve(self._body())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            del format, args

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = []
            while size := int(self.rfile.readline().strip() or b"0", 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def _serve(self, body: bytes) -> None:
            server.requests.append(self.path)
            shown = self.headers.get("Authorization", "")
            if shown:
                server.authorized.append((self.path, shown))
                server.on_authorized()
            wanted = next(
                (one for start, one in server.private.items() if self.path.startswith(start)), shown
            )
            if shown != wanted:
                fields = {"WWW-Authenticate": 'Basic realm="git"', "Content-Length": "0"}
                self._answer(401, fields, b"")
                return
            fault = next(
                (fault for start, fault in server.faults.items() if self.path.startswith(start)), None
            )
            if fault == "hang":
                server.wait_released(60)
                self.close_connection = True
            elif fault == "drip":
                self._drip()
            elif fault == "cut":
                self._answer(200, {"Content-Type": _ADVERTISED, "Content-Length": "1000"}, b"001e# service")
                self.close_connection = True
            elif isinstance(fault, int):
                self._answer(fault, {"Content-Length": "0"}, b"")
            elif isinstance(fault, str):
                start = next(start for start in server.faults if self.path.startswith(start))
                target = fault + self.path[len(start) :]
                self._answer(301, {"Location": target, "Content-Length": "0"}, b"")
            else:
                self._backend(body)

        def _drip(self) -> None:
            """A byte now and then, for ever."""
            self.send_response(200)
            self.send_header("Content-Type", _ADVERTISED)
            self.end_headers()
            self.close_connection = True
            try:
                while not server.wait_released(0.05):
                    self.wfile.write(b"0")
                    self.wfile.flush()
            except OSError:
                return

        def _backend(self, body: bytes) -> None:
            parts = urlsplit(self.path)
            env = {
                **GIT_ENV,
                "GIT_PROJECT_ROOT": str(server.root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": parts.path,
                "QUERY_STRING": parts.query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "REMOTE_ADDR": "127.0.0.1",
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
            }
            done = subprocess.run(
                ["git", "http-backend"], input=body, env=env, capture_output=True, check=False
            )
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            fields = dict(
                line.split(": ", 1) for line in head.decode("latin-1").split("\r\n") if ": " in line
            )
            status = int(fields.pop("Status", "200").split(" ")[0])
            self._answer(status, {**fields, "Content-Length": str(len(content))}, content)

        def _answer(self, status: int, fields: Mapping[str, str], content: bytes) -> None:
            try:
                self.send_response(status)
                for name, value in fields.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)
            except OSError:
                self.close_connection = True

    return Handler


def main() -> None:
    """Serve a folder until the standard input ends."""
    with git_server(Path(sys.argv[1])) as server:
        print(server.port, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
