"""The wire format between the queue and a NATS server: payloads of messages and dead letters, requests and
settlements, and the meaning of the server's answers. `ledger.broker.nats` sends and receives it."""

import hashlib
from secrets import token_hex

import msgspec
from nats.aio.msg import Msg
from nats.js import api

from vskill_platform.domain.messages import Send
from vskill_platform.ledger.broker.contract import DeadLetter, Delivery

ACK, NAK, IN_PROGRESS = b"+ACK", b"-NAK", b"+WPI"
_NS_PER_MS = 1_000_000


class NatsMessage(msgspec.Struct, frozen=True, array_like=True):
    """A message's payload. It holds the key, whose characters a subject or header may not allow."""

    body: bytes
    key: str | None
    #: The delay that was asked for when it was sent.
    delay_ms: int = 0


class DeadEnvelope(msgspec.Struct, frozen=True, array_like=True):
    """What is kept of a dead letter."""

    body: bytes
    key: str | None
    reason: str
    deliveries: int
    sent_at: int
    #: Its subject's last part, which includes the owner: a replay must collide with a live message of its key.
    token: str


class NatsDelivery(Delivery, frozen=True):
    """A delivery, the subject for its settlement, and the subject that it was sent to."""

    reply: str
    subject: str


_envelopes = msgspec.msgpack.Decoder(NatsMessage)
_dead_envelopes = msgspec.msgpack.Decoder(DeadEnvelope)


# To the server.


def token_of(send: Send) -> str:
    """A subject's last part: the same for the same key and owner, random if there is no key."""
    if send.key is None:
        return f"one.{token_hex(16)}"
    key = hashlib.sha256(send.key.encode()).hexdigest()[:40]
    return f"{owner_token(send.owner)}.{key}" if send.owner else f"key.{key}"


def owner_token(owner: str) -> str:
    """The prefix that an owner's messages share in their subjects, so that they can be counted."""
    return f"own.{hashlib.sha256(owner.encode()).hexdigest()[:16]}"


def payload_of(send: Send) -> bytes:
    return msgspec.msgpack.encode(NatsMessage(send.body, send.key, send.delay_ms))


def dead_payload(delivery: Delivery, reason: str, token: str) -> bytes:
    dead = DeadEnvelope(delivery.body, delivery.key, reason, delivery.deliveries, delivery.sent_at, token)
    return msgspec.msgpack.encode(dead)


def pull_request(batch: int, wait_s: float) -> bytes:
    wish: dict[str, object] = {"batch": batch}
    wish.update({"expires": int(wait_s * 1e9)} if wait_s > 0 else {"no_wait": True})
    return msgspec.json.encode(wish)


def nak_after(delay_ms: int) -> bytes:
    if delay_ms <= 0:
        return NAK
    return NAK + b" " + msgspec.json.encode({"delay": delay_ms * _NS_PER_MS})


# From the server.


def status_of(message: Msg) -> str | None:
    """The server's status, if it answered with one instead of a message."""
    return None if not message.headers or message.reply else message.headers.get("Status")


def delivery_of(message: Msg) -> tuple[NatsMessage, NatsDelivery]:
    """A foreign payload is delivered unchanged: the consumer sets it aside as a dead letter."""
    about = message.metadata
    try:
        envelope = _envelopes.decode(message.data)
    except msgspec.DecodeError:
        envelope = NatsMessage(message.data, None)
    sent_at = int(about.timestamp.timestamp() * 1000)
    numbers = (about.sequence.stream, about.sequence.consumer)
    return envelope, NatsDelivery(
        *numbers,
        envelope.body,
        envelope.key,
        about.num_delivered,
        sent_at,
        reply=message.reply,
        subject=message.subject,
    )


def dead_letter_of(kept: api.RawStreamMsg) -> DeadLetter:
    died_at = int(kept.time.timestamp() * 1000) if kept.time is not None else 0
    dead = _dead_envelopes.decode(kept.data or b"")
    return DeadLetter(kept.seq or 0, dead.body, dead.key, dead.reason, dead.deliveries, dead.sent_at, died_at)


def replay_of(kept: api.RawStreamMsg) -> tuple[str, bytes]:
    """The subject's last part and the payload to queue a dead letter again. Without a key the part is random: the old
    message may exist for a moment longer, and a collision with it would lose the replay."""
    dead = _dead_envelopes.decode(kept.data or b"")
    send = Send(dead.body, dead.key)
    return dead.token if dead.key is not None and dead.token else token_of(send), payload_of(send)
