-- Records by key. Columns are in the order in which they are needed: the value, which may be long, is last, so
-- that what looks at the others never reads its overflow pages.
--
-- `collection` and the columns named after one (`sub_…`, `skill_…`) are the declared fields, as the write that
-- brought the value read them. They have no declared type: a number never compares equal to its digits. Those that
-- were declared after this file was written are added by `sqlite_declared.sql`, with all indexes and triggers.
CREATE TABLE records (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL,
    -- milliseconds; caches only
    expires_at INTEGER,
    -- a hash of the searched texts, by which an unchanged one is left alone
    searched INTEGER,
    collection TEXT,
    sub_state,
    sub_updated_at,
    sub_created_at,
    sub_due_at,
    sub_digest,
    sub_submitter,
    sub_audience,
    skill_owner,
    skill_certification,
    skill_current_digest,
    skill_listed_at,
    skill_first_at,
    skill_installs,
    skill_category,
    skill_licence,
    skill_agent,
    skill_trust,
    skill_weight,
    skill_without,
    skill_provenance,
    skill_min_installs,
    skill_min_age,
    skill_audience,
    task_state,
    task_kind,
    task_updated_at,
    task_due_at,
    sketch_hashes,
    sketch_audience,
    value TEXT NOT NULL
);

CREATE INDEX records_expiry ON records (expires_at) WHERE expires_at IS NOT NULL;

-- One row: the last version given to a commit and the last id given to a record.
CREATE TABLE sequence (
    version INTEGER NOT NULL,
    record INTEGER NOT NULL
);
INSERT INTO sequence VALUES (0, 0);

-- What happened to which key, in the order of the commits. The upper bits of a change's number are the store's own
-- number, drawn once, so that a cursor which a backup or a copy brought along from another store is never taken for a
-- place in this one.
CREATE TABLE changes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    at INTEGER NOT NULL
);
INSERT INTO sqlite_sequence VALUES ('changes', (1 + abs(random() % 4194303)) << 40);

-- One row: the last change that was removed. A cursor before it is gone.
CREATE TABLE changes_swept (
    seq INTEGER NOT NULL
);
INSERT INTO changes_swept SELECT seq FROM sqlite_sequence WHERE name = 'changes';

-- Exact counts, kept by triggers on the counted fields. A record without the field counts under the empty blob,
-- because NULL is equal to nothing, not even in a primary key.
CREATE TABLE counts (
    collection TEXT NOT NULL,
    field TEXT NOT NULL,
    value NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (collection, field, value)
) WITHOUT ROWID;

-- The counts of each audience, beside `counts`, which are those of everything. A record without an audience counts under
-- the empty blob, like one without the field.
CREATE TABLE audience_counts (
    collection TEXT NOT NULL,
    field TEXT NOT NULL,
    audience NOT NULL,
    value NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (collection, field, audience, value)
) WITHOUT ROWID;

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
    body BLOB NOT NULL,
    -- whose work it is, so that one owner's many messages leave room for the others'; empty: nobody's
    owner TEXT NOT NULL DEFAULT ''
);

CREATE INDEX messages_by_visible_at ON messages (visible_at, id, leased);
CREATE INDEX messages_by_owner ON messages (owner, visible_at, id) WHERE owner <> '';

CREATE TABLE dead_letters (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT,
    reason TEXT NOT NULL,
    deliveries INTEGER NOT NULL,
    sent_at INTEGER NOT NULL,
    died_at INTEGER NOT NULL,
    body BLOB NOT NULL
);
