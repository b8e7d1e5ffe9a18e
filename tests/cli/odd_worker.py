"""A worker process that does what it must not: for tests of who starts it."""

import os
import socket
import sys
import time


def main(descriptor: int) -> None:
    """Say what is wanted in the environment, and end, hang, or be deaf."""
    kind = os.environ["ODD"]
    server = socket.socket(fileno=descriptor)
    if kind == "ends":
        sys.exit(3)
    if kind == "signal":
        os.kill(os.getpid(), 35)
    if kind == "babbles":
        server.sendall(b"no counts\n")
    if kind == "deaf":
        server.close()
    time.sleep(86_400)


if __name__ == "__main__":
    main(int(sys.argv[1]))
