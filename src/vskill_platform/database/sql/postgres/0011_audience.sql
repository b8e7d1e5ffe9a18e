-- Who may read a record becomes a declared field. Indexes by which readers ask begin with it from now on, and are made by
-- the generated script.
DROP INDEX IF EXISTS sub_by_created_at, sub_by_submitter_created_at;
DROP INDEX IF EXISTS skill_by_listed_at, skill_by_first_at, skill_by_installs, skill_by_owner_listed_at,
    skill_by_category_listed_at, skill_by_licence_listed_at, skill_by_agent_listed_at, skill_by_trust_listed_at,
    skill_by_certification_listed_at;

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
ALTER TABLE count_deltas ADD COLUMN audience text COLLATE "C";

-- What is counted of a record is said by `counted_fields`, and for whom by `audience_of`.
DROP FUNCTION count_field(text, text, text, bigint);
CREATE FUNCTION count_field(kind text, name text, found text, readers text, step bigint)
RETURNS void LANGUAGE sql AS $$
    INSERT INTO count_deltas (collection, field, value, known, audience, n)
    VALUES (kind, name, coalesce(found, ''), found IS NOT NULL, readers, step);
$$;
CREATE OR REPLACE FUNCTION count_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM count_field(NEW.collection, field, value, audience_of(NEW), 1) FROM counted_fields(NEW);
    RETURN NULL;
END;
$$;
CREATE OR REPLACE FUNCTION count_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM count_field(OLD.collection, field, value, audience_of(OLD), -1) FROM counted_fields(OLD);
    RETURN NULL;
END;
$$;
CREATE OR REPLACE FUNCTION count_changed() RETURNS trigger LANGUAGE plpgsql AS $$
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

-- derive: sub
-- derive: skill
