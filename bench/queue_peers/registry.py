"""Every queue that is compared, ours first. Where a queue's defaults are not its fastest, it stands here twice: as it
comes, and with what made it faster when everything that its worker offers was tried."""

from bench.queue_peers.runner import Peer

OURS = "vskill-platform"
LARGE = {"max_batch_size": 10}

OWN = (
    Peer(f"{OURS} on SQLite", "ours", "SQLite"),
    Peer(f"{OURS} in memory", "ours", "memory"),
)
OWN_ON_SERVERS = (
    Peer(f"{OURS} on PostgreSQL", "ours", "PostgreSQL", share=0.5),
    Peer(f"{OURS} on PostgreSQL, batches of 10", "ours", "PostgreSQL", "", LARGE, 0.5),
    Peer(f"{OURS} on NATS", "ours", "NATS", share=0.5),
    Peer(f"{OURS} on NATS, batches of 10", "ours", "NATS", "", LARGE, 0.5),
)

#: What needs nothing but a file.
ON_FILES = (
    Peer("huey, 1 thread", "huey", "SQLite", "huey", {"workers": 1}),
    Peer("huey, 10 threads", "huey", "SQLite", "huey", {"workers": 10}, 0.5),
    Peer("huey, 1 thread, nothing flushed", "huey", "SQLite", "huey", {"workers": 1, "fsync": False}),
    Peer("huey, 10 threads, nothing flushed", "huey", "SQLite", "huey", {"workers": 10, "fsync": False}),
)
ON_SERVERS = (
    Peer("pgqueuer", "pgqueuer", "PostgreSQL", "pgqueuer", {}, 0.5),
    Peer("pgqueuer, batches of 100", "pgqueuer", "PostgreSQL", "pgqueuer", {"batch_size": 100}, 0.5),
    Peer(
        "procrastinate, 30 at once", "procrastinate", "PostgreSQL", "procrastinate", {"concurrency": 30}, 0.05
    ),
    Peer("taskiq-nats", "taskiq_nats", "NATS", "taskiq_nats", {}, 0.3),
    Peer("taskiq-nats, fetching 100", "taskiq_nats", "NATS", "taskiq_nats", {"pull_consume_batch": 100}, 0.3),
    Peer("dramatiq, 8 threads", "dramatiq", "Valkey", "dramatiq", {}, 0.2),
    Peer("arq, 100 at once", "arq", "Valkey", "arq", {"max_jobs": 100}, 0.1),
    Peer("SAQ, 10 at once", "saq", "Valkey", "saq", {}, 0.1),
    Peer("Celery, 10 threads", "celery", "Valkey", "celery", {"pool": "threads", "concurrency": 10}, 0.1),
)
