"""A client that does as little as it can: the same requests over a few kept connections, as fast as answers come.

`python -m bench.web_client PORT COUNT PATH...` is a process of its own: its work is not counted as the server's.
"""

import asyncio
import sys
from itertools import cycle, islice

CONNECTIONS = 8


async def send_all(port: int, count: int, paths: list[str]) -> int:
    """Every request answered with 200; the bytes of all bodies."""
    requests = [f"GET {path} HTTP/1.1\r\nhost: bench\r\n\r\n".encode() for path in paths]
    all_of_them = list(islice(cycle(requests), count))
    shares = (all_of_them[start::CONNECTIONS] for start in range(CONNECTIONS))
    return sum(await asyncio.gather(*(_send(port, share) for share in shares)))


async def _send(port: int, requests: list[bytes]) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    received = 0
    for request in requests:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode("latin-1"))
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
        received += length
    writer.close()
    await writer.wait_closed()
    return received


if __name__ == "__main__":
    print(asyncio.run(send_all(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])))
