-- Records by key. Columns are in the order in which they are needed: the value, which may be long, is last, so
-- that what looks at the others never reads its overflow pages.
--
-- `collection` and the columns named after one (`sub_…`, `skill_…`) are the declared fields, as the write that
-- brought the value read them. They have no declared type: a number never compares equal to its digits.
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
    skill_owner,
    skill_certification,
    skill_current_digest,
    skill_updated_at,
    skill_created_at,
    task_state,
    task_kind,
    task_updated_at,
    task_due_at,
    value TEXT NOT NULL
);

CREATE INDEX records_expiry ON records (expires_at) WHERE expires_at IS NOT NULL;

CREATE INDEX sub_by_state_updated_at ON records (sub_state, sub_updated_at, key) WHERE collection = 'sub';
CREATE INDEX sub_by_state_due_at ON records (sub_state, sub_due_at, key) WHERE collection = 'sub';
CREATE INDEX sub_by_created_at ON records (sub_created_at, key) WHERE collection = 'sub';
CREATE INDEX sub_by_digest ON records (sub_digest, key) WHERE collection = 'sub';
CREATE INDEX sub_by_submitter_created_at ON records (sub_submitter, sub_created_at, key) WHERE collection = 'sub';

CREATE INDEX skill_by_updated_at ON records (skill_updated_at, key) WHERE collection = 'skill';
CREATE INDEX skill_by_created_at ON records (skill_created_at, key) WHERE collection = 'skill';
CREATE INDEX skill_by_owner_updated_at ON records (skill_owner, skill_updated_at, key) WHERE collection = 'skill';
CREATE INDEX skill_by_certification_updated_at ON records (skill_certification, skill_updated_at, key)
    WHERE collection = 'skill';
CREATE INDEX skill_by_current_digest ON records (skill_current_digest, key) WHERE collection = 'skill';

CREATE INDEX task_by_state_due_at ON records (task_state, task_due_at, key) WHERE collection = 'task';
CREATE INDEX task_by_kind_updated_at ON records (task_kind, task_updated_at, key) WHERE collection = 'task';

-- One row: the last version given to a commit and the last id given to a record.
CREATE TABLE sequence (
    version INTEGER NOT NULL,
    record INTEGER NOT NULL
);
INSERT INTO sequence VALUES (0, 0);

-- What happened to which key, in the order of the commits.
CREATE TABLE changes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    at INTEGER NOT NULL
);

-- One row: the last change that was removed. A cursor before it is gone.
CREATE TABLE changes_swept (
    seq INTEGER NOT NULL
);
INSERT INTO changes_swept VALUES (0);

-- Exact counts, kept by the triggers below. A record without the field counts under the empty blob, because
-- NULL is equal to nothing, not even in a primary key.
CREATE TABLE counts (
    collection TEXT NOT NULL,
    field TEXT NOT NULL,
    value NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (collection, field, value)
) WITHOUT ROWID;

CREATE TRIGGER sub_state_inserted AFTER INSERT ON records WHEN NEW.collection = 'sub'
BEGIN
    INSERT INTO counts VALUES ('sub', 'state', ifnull(NEW.sub_state, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER sub_state_deleted AFTER DELETE ON records WHEN OLD.collection = 'sub'
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'sub' AND field = 'state' AND value = ifnull(OLD.sub_state, x'');
END;
CREATE TRIGGER sub_state_changed AFTER UPDATE OF sub_state ON records
    WHEN NEW.collection = 'sub' AND OLD.sub_state IS NOT NEW.sub_state
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'sub' AND field = 'state' AND value = ifnull(OLD.sub_state, x'');
    INSERT INTO counts VALUES ('sub', 'state', ifnull(NEW.sub_state, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER skill_certification_inserted AFTER INSERT ON records WHEN NEW.collection = 'skill'
BEGIN
    INSERT INTO counts VALUES ('skill', 'certification', ifnull(NEW.skill_certification, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER skill_certification_deleted AFTER DELETE ON records WHEN OLD.collection = 'skill'
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'certification' AND value = ifnull(OLD.skill_certification, x'');
END;
CREATE TRIGGER skill_certification_changed AFTER UPDATE OF skill_certification ON records
    WHEN NEW.collection = 'skill' AND OLD.skill_certification IS NOT NEW.skill_certification
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'certification' AND value = ifnull(OLD.skill_certification, x'');
    INSERT INTO counts VALUES ('skill', 'certification', ifnull(NEW.skill_certification, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER task_state_inserted AFTER INSERT ON records WHEN NEW.collection = 'task'
BEGIN
    INSERT INTO counts VALUES ('task', 'state', ifnull(NEW.task_state, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER task_state_deleted AFTER DELETE ON records WHEN OLD.collection = 'task'
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'task' AND field = 'state' AND value = ifnull(OLD.task_state, x'');
END;
CREATE TRIGGER task_state_changed AFTER UPDATE OF task_state ON records
    WHEN NEW.collection = 'task' AND OLD.task_state IS NOT NEW.task_state
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'task' AND field = 'state' AND value = ifnull(OLD.task_state, x'');
    INSERT INTO counts VALUES ('task', 'state', ifnull(NEW.task_state, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;

-- The searched fields' terms, cut by us: this tokenizer splits at ASCII that is neither letter nor digit, and the
-- terms hold none. The row's id is the record's.
CREATE VIRTUAL TABLE sub_search USING fts5 (skill_name, repo_url, tokenize = 'ascii');
CREATE VIRTUAL TABLE skill_search USING fts5 (name, canonical, description, tokenize = 'ascii');
