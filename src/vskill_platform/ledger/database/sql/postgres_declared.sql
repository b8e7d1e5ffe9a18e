-- Written by `make reference` from kv/collections.py: change the declaration, not this file. It is run after the
-- migrations, over a new database or one that has some of it already, and removes nothing.

ALTER TABLE records ADD COLUMN IF NOT EXISTS sub_state text COLLATE "C";
ALTER TABLE records ADD COLUMN IF NOT EXISTS sub_updated_at bigint;
ALTER TABLE records ADD COLUMN IF NOT EXISTS sub_created_at bigint;
ALTER TABLE records ADD COLUMN IF NOT EXISTS sub_due_at bigint;
ALTER TABLE records ADD COLUMN IF NOT EXISTS sub_digest text COLLATE "C";
ALTER TABLE records ADD COLUMN IF NOT EXISTS sub_submitter text COLLATE "C";
ALTER TABLE records ADD COLUMN IF NOT EXISTS sub_audience text COLLATE "C";
CREATE INDEX IF NOT EXISTS sub_by_audience_state_updated_at ON records (sub_audience, sub_state, sub_updated_at, key)
    WHERE collection = 'sub';
CREATE INDEX IF NOT EXISTS sub_by_audience_created_at ON records (sub_audience, sub_created_at, key)
    WHERE collection = 'sub';
CREATE INDEX IF NOT EXISTS sub_by_audience_submitter_created_at ON records (sub_audience, sub_submitter, sub_created_at, key)
    WHERE collection = 'sub';
CREATE INDEX IF NOT EXISTS sub_by_audience_state_due_at ON records (sub_audience, sub_state, sub_due_at, key)
    WHERE collection = 'sub';
CREATE INDEX IF NOT EXISTS sub_by_state_due_at ON records (sub_state, sub_due_at, key)
    WHERE collection = 'sub';
CREATE INDEX IF NOT EXISTS sub_by_state_updated_at ON records (sub_state, sub_updated_at, key)
    WHERE collection = 'sub';
CREATE INDEX IF NOT EXISTS sub_by_digest ON records (sub_digest, key)
    WHERE collection = 'sub';
CREATE INDEX IF NOT EXISTS sub_words ON records USING gin ((CASE WHEN collection = 'sub' THEN terms END), (ARRAY[sub_audience]))
    WHERE (CASE WHEN collection = 'sub' THEN terms END) IS NOT NULL;
CREATE STATISTICS IF NOT EXISTS sub_words_common ON (CASE WHEN collection = 'sub' THEN terms END)
    FROM records;

ALTER TABLE records ADD COLUMN IF NOT EXISTS skill_owner text COLLATE "C";
ALTER TABLE records ADD COLUMN IF NOT EXISTS skill_certification text COLLATE "C";
ALTER TABLE records ADD COLUMN IF NOT EXISTS skill_current_digest text COLLATE "C";
ALTER TABLE records ADD COLUMN IF NOT EXISTS skill_listed_at bigint;
ALTER TABLE records ADD COLUMN IF NOT EXISTS skill_first_at bigint;
ALTER TABLE records ADD COLUMN IF NOT EXISTS skill_installs bigint;
ALTER TABLE records ADD COLUMN IF NOT EXISTS skill_category text COLLATE "C";
ALTER TABLE records ADD COLUMN IF NOT EXISTS skill_licence text COLLATE "C";
ALTER TABLE records ADD COLUMN IF NOT EXISTS skill_agent text COLLATE "C";
ALTER TABLE records ADD COLUMN IF NOT EXISTS skill_trust text COLLATE "C";
ALTER TABLE records ADD COLUMN IF NOT EXISTS skill_weight bigint;
ALTER TABLE records ADD COLUMN IF NOT EXISTS skill_without text COLLATE "C";
ALTER TABLE records ADD COLUMN IF NOT EXISTS skill_provenance text COLLATE "C";
ALTER TABLE records ADD COLUMN IF NOT EXISTS skill_min_installs text COLLATE "C";
ALTER TABLE records ADD COLUMN IF NOT EXISTS skill_min_age text COLLATE "C";
ALTER TABLE records ADD COLUMN IF NOT EXISTS skill_audience text COLLATE "C";
CREATE INDEX IF NOT EXISTS skill_by_audience ON records (skill_audience, key)
    WHERE collection = 'skill';
CREATE INDEX IF NOT EXISTS skill_by_audience_listed_at ON records (skill_audience, skill_listed_at, key)
    WHERE collection = 'skill';
CREATE INDEX IF NOT EXISTS skill_by_audience_first_at ON records (skill_audience, skill_first_at, key)
    WHERE collection = 'skill';
CREATE INDEX IF NOT EXISTS skill_by_audience_installs ON records (skill_audience, skill_installs, key)
    WHERE collection = 'skill';
CREATE INDEX IF NOT EXISTS skill_by_audience_owner_listed_at ON records (skill_audience, skill_owner, skill_listed_at, key)
    WHERE collection = 'skill';
CREATE INDEX IF NOT EXISTS skill_by_audience_category_listed_at ON records (skill_audience, skill_category, skill_listed_at, key)
    WHERE collection = 'skill';
CREATE INDEX IF NOT EXISTS skill_by_audience_licence_listed_at ON records (skill_audience, skill_licence, skill_listed_at, key)
    WHERE collection = 'skill';
CREATE INDEX IF NOT EXISTS skill_by_audience_agent_listed_at ON records (skill_audience, skill_agent, skill_listed_at, key)
    WHERE collection = 'skill';
CREATE INDEX IF NOT EXISTS skill_by_audience_trust_listed_at ON records (skill_audience, skill_trust, skill_listed_at, key)
    WHERE collection = 'skill';
CREATE INDEX IF NOT EXISTS skill_by_audience_certification_listed_at ON records (skill_audience, skill_certification, skill_listed_at, key)
    WHERE collection = 'skill';
CREATE INDEX IF NOT EXISTS skill_by_audience_without_listed_at ON records (skill_audience, skill_without, skill_listed_at, key)
    WHERE collection = 'skill';
CREATE INDEX IF NOT EXISTS skill_by_current_digest ON records (skill_current_digest, key)
    WHERE collection = 'skill';
CREATE INDEX IF NOT EXISTS skill_words ON records USING gin ((CASE WHEN collection = 'skill' THEN terms END), (ARRAY[skill_audience]))
    WHERE (CASE WHEN collection = 'skill' THEN terms END) IS NOT NULL;
CREATE STATISTICS IF NOT EXISTS skill_words_common ON (CASE WHEN collection = 'skill' THEN terms END)
    FROM records;

ALTER TABLE records ADD COLUMN IF NOT EXISTS task_state text COLLATE "C";
ALTER TABLE records ADD COLUMN IF NOT EXISTS task_kind text COLLATE "C";
ALTER TABLE records ADD COLUMN IF NOT EXISTS task_updated_at bigint;
ALTER TABLE records ADD COLUMN IF NOT EXISTS task_due_at bigint;
CREATE INDEX IF NOT EXISTS task_by_state_due_at ON records (task_state, task_due_at, key)
    WHERE collection = 'task';
CREATE INDEX IF NOT EXISTS task_by_kind_updated_at ON records (task_kind, task_updated_at, key)
    WHERE collection = 'task';

ALTER TABLE records ADD COLUMN IF NOT EXISTS sketch_hashes bigint[];
ALTER TABLE records ADD COLUMN IF NOT EXISTS sketch_audience text COLLATE "C";
CREATE INDEX IF NOT EXISTS sketch_by_audience ON records (sketch_audience, key)
    WHERE collection = 'sketch';
CREATE TABLE IF NOT EXISTS sketch_numbers (
    number bigint NOT NULL,
    family text COLLATE "C" NOT NULL,
    record bigint NOT NULL,
    PRIMARY KEY (number, family, record)
);
CREATE INDEX IF NOT EXISTS sketch_by_hash ON records (hashtextextended(key, 0))
    WHERE collection = 'sketch';
CREATE OR REPLACE FUNCTION keep_sketch_numbers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM sketch_numbers
        WHERE number = ANY (OLD.sketch_hashes) AND family = split_part(substr(OLD.key, 8), '/', 1)
            AND record = hashtextextended(OLD.key, 0);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO sketch_numbers
        SELECT unnest(NEW.sketch_hashes), split_part(substr(NEW.key, 8), '/', 1), hashtextextended(NEW.key, 0)
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END;
$$;
DROP TRIGGER IF EXISTS sketch_numbers_inserted ON records;
CREATE TRIGGER sketch_numbers_inserted AFTER INSERT ON records
    FOR EACH ROW WHEN (NEW.collection = 'sketch') EXECUTE FUNCTION keep_sketch_numbers();
DROP TRIGGER IF EXISTS sketch_numbers_changed ON records;
CREATE TRIGGER sketch_numbers_changed AFTER UPDATE ON records
    FOR EACH ROW WHEN (NEW.collection = 'sketch') EXECUTE FUNCTION keep_sketch_numbers();
DROP TRIGGER IF EXISTS sketch_numbers_deleted ON records;
CREATE TRIGGER sketch_numbers_deleted AFTER DELETE ON records
    FOR EACH ROW WHEN (OLD.collection = 'sketch') EXECUTE FUNCTION keep_sketch_numbers();

-- The fields of a record that are counted, with their values.
CREATE OR REPLACE FUNCTION counted_fields(one records) RETURNS TABLE (field text, value text)
LANGUAGE sql IMMUTABLE AS $$
    SELECT counted.field, counted.value FROM (VALUES
        ('sub', 'state', one.sub_state),
        ('sub', 'audience', one.sub_audience),
        ('skill', 'category', one.skill_category),
        ('skill', 'licence', one.skill_licence),
        ('skill', 'agent', one.skill_agent),
        ('skill', 'trust', one.skill_trust),
        ('skill', 'certification', one.skill_certification),
        ('skill', 'without', one.skill_without),
        ('skill', 'provenance', one.skill_provenance),
        ('skill', 'min_installs', one.skill_min_installs),
        ('skill', 'min_age', one.skill_min_age),
        ('skill', 'audience', one.skill_audience),
        ('task', 'state', one.task_state),
        ('sketch', 'audience', one.sketch_audience)
    ) AS counted (collection, field, value) WHERE counted.collection = one.collection;
$$;

-- Who may read a record; NULL where it does not say.
CREATE OR REPLACE FUNCTION audience_of(one records) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE one.collection
        WHEN 'sub' THEN one.sub_audience
        WHEN 'skill' THEN one.skill_audience
        WHEN 'sketch' THEN one.sketch_audience
    END;
$$;

-- Write records, given as rows of the table without their version.
CREATE OR REPLACE FUNCTION write_records(puts json, number bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    base records;
BEGIN
    base.version := number;
    INSERT INTO records SELECT * FROM json_populate_recordset(base, puts)
    ON CONFLICT (key) DO UPDATE SET
        version = excluded.version,
        expires_at = excluded.expires_at,
        collection = excluded.collection,
        sub_state = excluded.sub_state,
        sub_updated_at = excluded.sub_updated_at,
        sub_created_at = excluded.sub_created_at,
        sub_due_at = excluded.sub_due_at,
        sub_digest = excluded.sub_digest,
        sub_submitter = excluded.sub_submitter,
        sub_audience = excluded.sub_audience,
        skill_owner = excluded.skill_owner,
        skill_certification = excluded.skill_certification,
        skill_current_digest = excluded.skill_current_digest,
        skill_listed_at = excluded.skill_listed_at,
        skill_first_at = excluded.skill_first_at,
        skill_installs = excluded.skill_installs,
        skill_category = excluded.skill_category,
        skill_licence = excluded.skill_licence,
        skill_agent = excluded.skill_agent,
        skill_trust = excluded.skill_trust,
        skill_weight = excluded.skill_weight,
        skill_without = excluded.skill_without,
        skill_provenance = excluded.skill_provenance,
        skill_min_installs = excluded.skill_min_installs,
        skill_min_age = excluded.skill_min_age,
        skill_audience = excluded.skill_audience,
        task_state = excluded.task_state,
        task_kind = excluded.task_kind,
        task_updated_at = excluded.task_updated_at,
        task_due_at = excluded.task_due_at,
        sketch_hashes = excluded.sketch_hashes,
        sketch_audience = excluded.sketch_audience,
        terms = excluded.terms,
        value = excluded.value;
END;
$$;
