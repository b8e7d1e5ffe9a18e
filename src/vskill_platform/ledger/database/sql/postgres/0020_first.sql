-- Records by key, compared byte by byte. The declared fields of each kind are columns that the write fills, as the
-- contract itself reads them out of the value; `terms` holds the searched words, cut by us. Fields that were declared
-- after this file was written are added by `postgres_declared.sql`, with all indexes over fields and words.
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
    sub_audience text COLLATE "C",
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
    skill_weight bigint,
    skill_audience text COLLATE "C",
    task_state text COLLATE "C",
    task_kind text COLLATE "C",
    task_updated_at bigint,
    task_due_at bigint,
    sketch_hashes bigint[],
    sketch_audience text COLLATE "C",
    terms tsvector,
    value text NOT NULL
) WITH (fillfactor = 80);

CREATE INDEX records_expiry ON records (expires_at) WHERE expires_at IS NOT NULL;

-- One number per commit: the version of every key that it wrote.
CREATE SEQUENCE versions;

-- What happened to which key. A reader sees only transactions older than every one that still runs, so a commit
-- that is late never slips in behind a cursor. The upper bits of `seq` are the store's own number, drawn once, so that a
-- cursor which a backup or a copy brought along from another store is never taken for a place in this one.
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
INSERT INTO changes_swept VALUES (0, (1 + floor(random() * 4194303))::bigint << 40);
SELECT setval(pg_get_serial_sequence('changes', 'seq'), seq) FROM changes_swept;

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
-- The counts of each audience, beside `counts`, which are those of everything. A record without an audience counts where
-- `named` is false. Both are folded from the same rows; there the audience of such a record is NULL.
CREATE TABLE audience_counts (
    collection text NOT NULL,
    field text NOT NULL,
    audience text COLLATE "C" NOT NULL,
    named boolean NOT NULL,
    value text COLLATE "C" NOT NULL,
    known boolean NOT NULL,
    n bigint NOT NULL,
    PRIMARY KEY (collection, field, audience, named, value, known)
);
CREATE TABLE count_deltas (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection text NOT NULL,
    field text NOT NULL,
    value text COLLATE "C" NOT NULL,
    known boolean NOT NULL,
    n bigint NOT NULL,
    audience text COLLATE "C"
);

-- What is counted of a record is said by `counted_fields`, and for whom by `audience_of`.
CREATE FUNCTION count_field(kind text, name text, found text, readers text, step bigint)
RETURNS void LANGUAGE sql AS $$
    INSERT INTO count_deltas (collection, field, value, known, audience, n)
    VALUES (kind, name, coalesce(found, ''), found IS NOT NULL, readers, step);
$$;
CREATE FUNCTION count_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM count_field(NEW.collection, field, value, audience_of(NEW), 1) FROM counted_fields(NEW);
    RETURN NULL;
END;
$$;
CREATE FUNCTION count_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM count_field(OLD.collection, field, value, audience_of(OLD), -1) FROM counted_fields(OLD);
    RETURN NULL;
END;
$$;
CREATE FUNCTION count_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before text := audience_of(OLD);
    after text := audience_of(NEW);
BEGIN
    PERFORM count_field(NEW.collection, was.field, was.value, before, -1),
        count_field(NEW.collection, now.field, now.value, after, 1)
    FROM counted_fields(OLD) AS was JOIN counted_fields(NEW) AS now USING (field)
    WHERE was.value IS DISTINCT FROM now.value OR before IS DISTINCT FROM after;
    RETURN NULL;
END;
$$;

CREATE TRIGGER record_inserted AFTER INSERT ON records
    FOR EACH ROW WHEN (NEW.collection IS NOT NULL) EXECUTE FUNCTION count_inserted();
CREATE TRIGGER record_deleted AFTER DELETE ON records
    FOR EACH ROW WHEN (OLD.collection IS NOT NULL) EXECUTE FUNCTION count_deleted();
CREATE TRIGGER record_changed AFTER UPDATE ON records
    FOR EACH ROW WHEN (NEW.collection IS NOT NULL) EXECUTE FUNCTION count_changed();

-- The queue. `visible_at` is the one time that a message has: when it may be taken. A delay and a lease both move
-- it, so the earliest visible one is always the fair next one.
CREATE TABLE messages (
    -- never given twice, so that an id and a number of deliveries name one lease
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- at most one live message per key; any number without one
    key text COLLATE "C" UNIQUE,
    visible_at bigint NOT NULL,
    leased boolean NOT NULL DEFAULT false,
    deliveries integer NOT NULL DEFAULT 0,
    sent_at bigint NOT NULL,
    body bytea NOT NULL,
    -- whose work it is, so that one owner's many messages leave room for the others'; empty: nobody's
    owner text COLLATE "C" NOT NULL DEFAULT ''
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX messages_by_visible_at ON messages (visible_at, id);
CREATE INDEX messages_by_owner ON messages (owner, visible_at, id) WHERE owner <> '';

CREATE TABLE dead_letters (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text,
    reason text NOT NULL,
    deliveries integer NOT NULL,
    sent_at bigint NOT NULL,
    died_at bigint NOT NULL,
    body bytea NOT NULL
);

-- Queue messages; how many are new. A waiting one of the same key is pulled forward to the earlier time; one that
-- a worker holds stays as it is, unless its lease ends later than any lease can (`latest`): then it has ended.
-- Keys come sorted and each once, so two senders never wait for each other in a circle.
CREATE FUNCTION send_messages(
    keys text[], times bigint[], bodies bytea[], owners text[], now bigint, latest bigint
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
    new bigint;
BEGIN
    INSERT INTO messages (key, visible_at, sent_at, body, owner)
    SELECT one.key, one.at, now, one.body, one.owner
    FROM unnest(keys, times, bodies, owners) AS one (key, at, body, owner)
    ON CONFLICT (key) DO NOTHING;
    GET DIAGNOSTICS new = ROW_COUNT;
    before := cardinality(keys) - new;
    IF before > 0 THEN
        UPDATE messages SET visible_at = one.at
        FROM unnest(keys, times) AS one (key, at)
        WHERE messages.key = one.key AND messages.visible_at > one.at
            AND (NOT messages.leased OR messages.visible_at > latest);
    END IF;
    PERFORM pg_notify('vskill_messages', '');
    RETURN new;
END;
$$;

-- One commit in one round trip: all of it, or nothing and the reason.
--
-- Every key that is written or asserted is locked first, in one order for everybody, whether or not a record is there:
-- so an assertion that a key is absent holds until the end, and no two commits wait for each other in a circle.
-- What is read afterwards is what is there, because each statement sees what was committed before it began.
CREATE FUNCTION commit_records(
    written text[],
    asserted text[],
    -- keys whose version is compared, and with what; 0 is absent
    expected_keys text[],
    expected_versions bigint[],
    -- records to write, for `write_records`
    puts json,
    -- counters: rows like the others, with `n` beside them
    adds json,
    deletes text[],
    -- keys that are written and whose change is told
    told text[],
    now bigint,
    OUT version bigint,
    OUT refused_key text,
    OUT refused_version bigint
) LANGUAGE plpgsql AS $$
DECLARE
    lock record;
    gone_of bigint;
    told_of bigint;
BEGIN
    FOR lock IN
        SELECT hashtextextended(one.key, 0) AS number, bool_or(one.writes) AS writes
        FROM (SELECT unnest(written) AS key, true AS writes UNION ALL SELECT unnest(asserted), false) AS one
        GROUP BY 1 ORDER BY 1
    LOOP
        IF lock.writes THEN
            PERFORM pg_advisory_xact_lock(lock.number);
        ELSE
            PERFORM pg_advisory_xact_lock_shared(lock.number);
        END IF;
    END LOOP;

    SELECT wanted.key, coalesce(there.version, 0) INTO refused_key, refused_version
    FROM unnest(expected_keys, expected_versions) WITH ORDINALITY AS wanted (key, version, place)
    LEFT JOIN records AS there
        ON there.key = wanted.key AND (there.expires_at IS NULL OR there.expires_at > now)
    WHERE coalesce(there.version, 0) <> wanted.version
    ORDER BY wanted.place LIMIT 1;
    IF refused_key IS NOT NULL THEN
        RETURN;
    END IF;

    IF adds IS NOT NULL THEN
        SELECT there.key, -1 INTO refused_key, refused_version
        FROM json_populate_recordset(NULL::records, adds) AS one JOIN records AS there ON there.key = one.key
        WHERE (there.expires_at IS NULL OR there.expires_at > now) AND there.value !~ '^-?[0-9]{1,18}$'
        LIMIT 1;
        IF refused_key IS NOT NULL THEN
            RETURN;
        END IF;
    END IF;

    version := nextval('versions');

    WITH gone AS (
        DELETE FROM records WHERE key = ANY (deletes) RETURNING key, expires_at
    )
    INSERT INTO changes (key, version, deleted, at)
    SELECT gone.key, commit_records.version, true, now FROM gone WHERE gone.expires_at IS NULL OR gone.expires_at > now;
    GET DIAGNOSTICS gone_of = ROW_COUNT;

    IF adds IS NOT NULL THEN
        INSERT INTO records (key, version, collection, value)
        SELECT one.key, commit_records.version, one.collection, (coalesce(there.value, '0')::bigint + one.n)::text
        FROM json_to_recordset(adds) AS one (key text, collection text, n bigint)
        LEFT JOIN records AS there ON there.key = one.key AND (there.expires_at IS NULL OR there.expires_at > now)
        ON CONFLICT (key) DO UPDATE SET
            version = excluded.version, expires_at = NULL, value = excluded.value;
    END IF;

    IF puts IS NOT NULL THEN
        PERFORM write_records(puts, version);
    END IF;

    INSERT INTO changes (key, version, deleted, at)
    SELECT one.key, commit_records.version, false, now FROM unnest(told) AS one (key);
    GET DIAGNOSTICS told_of = ROW_COUNT;

    IF gone_of + told_of > 0 THEN
        PERFORM pg_notify('vskill_changes', '');
    END IF;
END;
$$;
