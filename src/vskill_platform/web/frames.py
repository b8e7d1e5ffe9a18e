"""Frames of a server-sent event stream. Each carries the cursor of the change that it tells, which the client sends
back as `Last-Event-ID` when it comes again."""

import msgspec


def frame(event: str, data: object, cursor: str) -> bytes:
    """A named event with JSON data, which never holds a line break; an empty name is a plain `message`."""
    named = f"event: {event}\n" if event else ""
    return f"id: {cursor}\n{named}data: ".encode() + msgspec.json.encode(data) + b"\n\n"


def comment(text: str, cursor: str) -> bytes:
    """Keeps the connection open and moves the client's cursor on, without an event."""
    return f": {text}\nid: {cursor}\n\n".encode()
