"""A real SMTP server on loopback that keeps what it is sent, and refuses what it is told to."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Mailroom:
    """What came in, and what is answered to RCPT: each once, then 250."""

    def __init__(self) -> None:
        #: Sender, recipient and the message as sent.
        self.mails: list[tuple[str, str, str]] = []
        self.answers: list[str] = []
        self.logins: list[str] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"


@contextmanager
def smtp_server() -> Iterator[Mailroom]:  # noqa: C901 - one small protocol
    """Listens on a free port until the block ends."""
    room = Mailroom()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            sender = recipient = ""
            self._say("220 mailroom")
            while line := self.rfile.readline().decode().strip():
                verb = line.split(" ")[0].split(":")[0].upper()
                if verb == "EHLO":
                    self._say("250-mailroom\r\n250 AUTH PLAIN")
                elif verb == "AUTH":
                    room.logins.append(line)
                    self._say("235 in" if line.endswith("AHVzZXIAcGFzcw==") else "535 wrong")
                elif verb == "MAIL":
                    sender = line.partition("<")[2].partition(">")[0]
                    self._say("250 ok")
                elif verb == "RCPT":
                    recipient = line.partition("<")[2].partition(">")[0]
                    self._say(room.answers.pop(0) if room.answers else "250 ok")
                elif verb == "DATA":
                    self._say("354 go on")
                    room.mails.append((sender, recipient, self._message()))
                    self._say("250 kept")
                elif verb == "QUIT":
                    self._say("221 bye")
                    return
                else:
                    self._say("250 ok")

        def _say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

        def _message(self) -> str:
            lines: list[str] = []
            while (line := self.rfile.readline().decode().rstrip("\r\n")) != ".":
                lines.append(line)
            return "\n".join(lines)

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    server = Server(("127.0.0.1", 0), Handler)
    room.port = int(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield room
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
