-- The queue. `visible_at` is the one time that a message has: when it may be taken. A delay and a lease both move
-- it, so the earliest visible one is always the fair next one.
CREATE TABLE messages (
    -- never given twice, so that an id and a number of deliveries name one lease
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- at most one live message per key; any number without one
    key TEXT UNIQUE,
    visible_at INTEGER NOT NULL,
    leased INTEGER NOT NULL DEFAULT 0,
    deliveries INTEGER NOT NULL DEFAULT 0,
    sent_at INTEGER NOT NULL,
    body BLOB NOT NULL
);

CREATE INDEX messages_by_visible_at ON messages (visible_at, id, leased);

CREATE TABLE dead_letters (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT,
    reason TEXT NOT NULL,
    deliveries INTEGER NOT NULL,
    sent_at INTEGER NOT NULL,
    died_at INTEGER NOT NULL,
    body BLOB NOT NULL
);
