"""What a job costs with 1, 2 and 4 worker processes beside 4 web processes, all real ones, on one PostgreSQL and one
NATS, which share the machine's cores with them; and with `serve` on SQLite, for the guide to sizes
(docs/how-to/sizing.md). `python -m bench.scaling` runs it.

A job is an uploaded skill with content of its own, from RECEIVED to PUBLISHED: read, scanned, signed, published. The
backlog is submitted while the queue is paused, and the clock runs from the end of the pause until all of it is
published. Every worker has worked before, so no start is measured. Every web process has one open event stream, on
which every submission must be told.
"""
