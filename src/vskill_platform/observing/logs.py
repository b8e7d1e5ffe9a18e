"""What a process logs: structured lines, each a static event text with fields, the unit in a field's name. Context that
belongs to one batch, job or request is bound with `structlog.contextvars`, so that it ends with it."""

import functools
import io
import logging
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, TextIO, cast

import structlog
from structlog.typing import FilteringBoundLogger, Processor

from vskill_platform.settings import Settings


def configure_logging(settings: Settings, stream: TextIO | None = None) -> FilteringBoundLogger:
    """Send every log line of this process, other packages' included, to one stream in one form."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    stream = stream or sys.stderr
    rendering = _rendering(settings, colours=stream is not None and stream.isatty())
    out = cast("TextIO", SteadyStream(stream, functools.partial(_loss_line, rendering)))
    structlog.configure(
        processors=[*_common(), *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    _route_standard_logging(rendering, out, level)
    return logger()


class SteadyStream(io.TextIOBase):
    """Where log lines and the start-up banner go. A write that fails (the disk is full, the reader has gone, the stream
    was never open) is dropped and counted, and does not end the work that it tells of. The first write that succeeds
    again is preceded by the line that `describe_loss` makes of the count.

    It writes to the descriptor itself: a failed line must not stay in a buffer, to fail again at exit.
    """

    def __init__(self, out: TextIO | None, describe_loss: Callable[[int], str] = lambda _: "") -> None:
        self._out = out
        self._describe_loss = describe_loss
        self._lock = threading.Lock()
        self._lost = 0
        #: The last write stopped in the middle of a line.
        self._cut = False

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a plain attribute there
        return getattr(self._out, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        with self._lock:
            if self._lost and self._try_write(self._describe_loss(self._lost)):
                self._lost = 0
            if self._lost or not self._try_write(text):
                self._lost += 1
        return len(text)

    def isatty(self) -> bool:
        return self._out is not None and self._out.isatty()

    def _try_write(self, text: str) -> bool:
        if self._out is None:
            return False
        try:
            self._write_bytes(self._out.fileno(), text.encode(self.encoding, "backslashreplace"))
        except io.UnsupportedOperation:  # not a file of the system, as in tests
            return self._try_write_text(self._out, text)
        except (OSError, ValueError):
            return False
        return True

    def _write_bytes(self, descriptor: int, data: bytes) -> None:
        rest = b"\n" + data if self._cut else data
        while rest:
            rest = rest[os.write(descriptor, rest) :]
            self._cut = bool(rest)

    def _try_write_text(self, out: TextIO, text: str) -> bool:
        try:
            out.write(text)
        except (OSError, ValueError):
            return False
        return True


def _loss_line(rendering: Sequence[Processor], lost: int) -> str:
    """The log line that replaces lines that could not be written."""
    event: Any = {"event": "log lines could not be written", "lines": lost}
    for process in (*_common()[1:], *rendering):
        event = process(None, "warning", event)
    return f"{event}\n"


def logger(**fields: object) -> FilteringBoundLogger:
    """The process's logger. Below the configured level a call costs next to nothing."""
    return cast("FilteringBoundLogger", structlog.get_logger().bind(**fields))


def _common() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]


def _rendering(settings: Settings, *, colours: bool) -> list[Processor]:
    if settings.log_format == "json":
        # Local variables of a traceback may hold tokens, so they stay out of the log.
        transform = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        return [
            structlog.processors.ExceptionRenderer(transform),
            structlog.processors.JSONRenderer(default=str),
        ]
    return [structlog.dev.ConsoleRenderer(colors=colours, exception_formatter=structlog.dev.plain_traceback)]


def _route_standard_logging(rendering: Sequence[Processor], out: TextIO, level: int) -> None:
    """Give the lines of packages that use the standard library (uvicorn, asyncio) the same form."""
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=_common(),
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *rendering,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(level, logging.INFO))
