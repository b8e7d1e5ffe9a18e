"""What travels through the queue. A message says "look at this record" and no more: the record is the truth,
so a message that is lost, doubled or late harms nothing."""

import msgspec


class Send(msgspec.Struct, frozen=True):
    """A message to put on the queue, alone or as part of a store commit."""

    body: bytes
    #: At most one live message per key; sending again pulls a waiting one forward to the earlier time.
    key: str | None = None
    delay_ms: int = 0
    #: For work that was begun, without a delay: a message of this key that was handed out, and that nobody holds any
    #: more, goes to the place where it stood when it was sent.
    first: bool = False
    #: Whose work it is, the same for every message of a key; empty: nobody's. One owner's many messages leave room for
    #: others'.
    owner: str = ""
    #: The sender comes again until the work is done, so an engine may drop it.
    repeated: bool = False


class SubmissionMessage(msgspec.Struct, frozen=True, tag_field="kind", tag="submission"):
    """Look at this run of this submission."""

    submission_id: str
    run: int

    @property
    def key(self) -> str:
        return f"{self.submission_id}:{self.run}"


class TaskMessage(msgspec.Struct, frozen=True, tag_field="kind", tag="task"):
    """Look at this run of this task."""

    task: str
    id: str
    run: int

    @property
    def key(self) -> str:
        return f"task:{self.task}:{self.id}:{self.run}"


#: Every kind of message.
Body = SubmissionMessage | TaskMessage

_decoder: msgspec.json.Decoder[Body] = msgspec.json.Decoder(Body)


def submission_send(
    submission_id: str, run: int, *, owner: str = "", delay_ms: int = 0, first: bool = False
) -> Send:
    """The one message that serves this run of this submission."""
    return _send(SubmissionMessage(submission_id, run), delay_ms, first=first, owner=owner)


def task_send(kind: str, task_id: str, run: int, *, delay_ms: int = 0, first: bool = False) -> Send:
    """The one message that serves this run of this task. All tasks of a kind have one owner: the platform's own bulk
    work leaves room for what people submit."""
    return _send(TaskMessage(kind, task_id, run), delay_ms, first=first, owner=f"task:{kind}")


def decode_body(body: bytes) -> Body:
    """Raises msgspec.DecodeError for anything that is not one of our messages."""
    return _decoder.decode(body)


def _send(message: Body, delay_ms: int, *, first: bool, owner: str) -> Send:
    return Send(msgspec.json.encode(message), message.key, delay_ms, first, owner)
