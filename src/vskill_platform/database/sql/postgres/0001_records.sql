-- Records by key, compared byte by byte. The declared fields of each kind are columns that the write fills, as the
-- contract itself reads them out of the value; `terms` holds the searched words, cut by us.
CREATE TABLE records (
    key text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    -- milliseconds; caches only
    expires_at bigint,
    collection text COLLATE "C",
    sub_state text COLLATE "C",
    sub_updated_at bigint,
    sub_created_at bigint,
    sub_due_at bigint,
    sub_digest text COLLATE "C",
    sub_submitter text COLLATE "C",
    skill_owner text COLLATE "C",
    skill_certification text COLLATE "C",
    skill_current_digest text COLLATE "C",
    skill_listed_at bigint,
    skill_first_at bigint,
    skill_installs bigint,
    skill_category text COLLATE "C",
    skill_licence text COLLATE "C",
    skill_agent text COLLATE "C",
    skill_trust text COLLATE "C",
    task_state text COLLATE "C",
    task_kind text COLLATE "C",
    task_updated_at bigint,
    task_due_at bigint,
    terms tsvector,
    value text NOT NULL
) WITH (fillfactor = 80);

CREATE INDEX records_expiry ON records (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX records_terms ON records USING gin (terms) WHERE terms IS NOT NULL;

CREATE INDEX sub_by_state_updated_at ON records (sub_state, sub_updated_at, key)
    WHERE collection = 'sub';
CREATE INDEX sub_by_state_due_at ON records (sub_state, sub_due_at, key)
    WHERE collection = 'sub';
CREATE INDEX sub_by_created_at ON records (sub_created_at, key)
    WHERE collection = 'sub';
CREATE INDEX sub_by_digest ON records (sub_digest, key)
    WHERE collection = 'sub';
CREATE INDEX sub_by_submitter_created_at ON records (sub_submitter, sub_created_at, key)
    WHERE collection = 'sub';

CREATE INDEX skill_by_listed_at ON records (skill_listed_at, key)
    WHERE collection = 'skill';
CREATE INDEX skill_by_first_at ON records (skill_first_at, key)
    WHERE collection = 'skill';
CREATE INDEX skill_by_installs ON records (skill_installs, key)
    WHERE collection = 'skill';
CREATE INDEX skill_by_owner_listed_at ON records (skill_owner, skill_listed_at, key)
    WHERE collection = 'skill';
CREATE INDEX skill_by_category_listed_at ON records (skill_category, skill_listed_at, key)
    WHERE collection = 'skill';
CREATE INDEX skill_by_licence_listed_at ON records (skill_licence, skill_listed_at, key)
    WHERE collection = 'skill';
CREATE INDEX skill_by_agent_listed_at ON records (skill_agent, skill_listed_at, key)
    WHERE collection = 'skill';
CREATE INDEX skill_by_trust_listed_at ON records (skill_trust, skill_listed_at, key)
    WHERE collection = 'skill';
CREATE INDEX skill_by_certification_listed_at ON records (skill_certification, skill_listed_at, key)
    WHERE collection = 'skill';
CREATE INDEX skill_by_current_digest ON records (skill_current_digest, key)
    WHERE collection = 'skill';

CREATE INDEX task_by_state_due_at ON records (task_state, task_due_at, key)
    WHERE collection = 'task';
CREATE INDEX task_by_kind_updated_at ON records (task_kind, task_updated_at, key)
    WHERE collection = 'task';

-- One number per commit: the version of every key that it wrote.
CREATE SEQUENCE versions;

-- What happened to which key. A reader sees only transactions older than every one that still runs, so a commit
-- that is late never slips in behind a cursor.
CREATE TABLE changes (
    xid bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint,
    seq bigint GENERATED ALWAYS AS IDENTITY,
    key text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    deleted boolean NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (xid, seq)
);
CREATE INDEX changes_by_time ON changes (at);

-- One row: the last change that was removed. A cursor before it is gone.
CREATE TABLE changes_swept (
    xid bigint NOT NULL,
    seq bigint NOT NULL
);
INSERT INTO changes_swept VALUES (0, 0);

-- Exact counts: `counts` and whatever was appended since it was folded last. One row per state would make every
-- transition wait for every other. A record without the field counts where `known` is false.
CREATE TABLE counts (
    collection text NOT NULL,
    field text NOT NULL,
    value text COLLATE "C" NOT NULL,
    known boolean NOT NULL,
    n bigint NOT NULL,
    PRIMARY KEY (collection, field, value, known)
);
CREATE TABLE count_deltas (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection text NOT NULL,
    field text NOT NULL,
    value text COLLATE "C" NOT NULL,
    known boolean NOT NULL,
    n bigint NOT NULL
);

CREATE FUNCTION count_field(kind text, name text, found text, step bigint) RETURNS void LANGUAGE sql AS $$
    INSERT INTO count_deltas (collection, field, value, known, n)
    VALUES (kind, name, coalesce(found, ''), found IS NOT NULL, step);
$$;

CREATE FUNCTION count_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM count_field(NEW.collection, field, value, 1) FROM counted_fields(NEW);
    RETURN NULL;
END;
$$;
CREATE FUNCTION count_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM count_field(OLD.collection, field, value, -1) FROM counted_fields(OLD);
    RETURN NULL;
END;
$$;
CREATE FUNCTION count_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM count_field(NEW.collection, was.field, was.value, -1), count_field(NEW.collection, now.field, now.value, 1)
    FROM counted_fields(OLD) AS was JOIN counted_fields(NEW) AS now USING (field)
    WHERE was.value IS DISTINCT FROM now.value;
    RETURN NULL;
END;
$$;
CREATE FUNCTION counted_fields(one records) RETURNS TABLE (field text, value text) LANGUAGE sql IMMUTABLE AS $$
    SELECT counted.field, counted.value FROM (VALUES
        ('sub', 'state', one.sub_state),
        ('skill', 'certification', one.skill_certification),
        ('skill', 'category', one.skill_category),
        ('skill', 'licence', one.skill_licence),
        ('skill', 'agent', one.skill_agent),
        ('skill', 'trust', one.skill_trust),
        ('task', 'state', one.task_state)
    ) AS counted (collection, field, value) WHERE counted.collection = one.collection;
$$;

CREATE TRIGGER record_inserted AFTER INSERT ON records
    FOR EACH ROW WHEN (NEW.collection IS NOT NULL) EXECUTE FUNCTION count_inserted();
CREATE TRIGGER record_deleted AFTER DELETE ON records
    FOR EACH ROW WHEN (OLD.collection IS NOT NULL) EXECUTE FUNCTION count_deleted();
CREATE TRIGGER record_changed AFTER UPDATE ON records
    FOR EACH ROW WHEN (NEW.collection IS NOT NULL) EXECUTE FUNCTION count_changed();
