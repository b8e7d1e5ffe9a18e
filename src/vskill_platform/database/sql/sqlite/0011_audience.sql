-- Who may read a record becomes a declared field. Its columns stand before the value like all others, which SQLite cannot
-- do to a table that is there: the records are moved to a new one. The old one takes its indexes and triggers with it;
-- the generated script makes those of today, which begin with the audience where readers ask by them.
CREATE TABLE moved_records (
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
    skill_audience,
    task_state,
    task_kind,
    task_updated_at,
    task_due_at,
    value TEXT NOT NULL
);
INSERT INTO moved_records (
    id, key, version, expires_at, searched, collection,
    sub_state, sub_updated_at, sub_created_at, sub_due_at, sub_digest, sub_submitter,
    skill_owner, skill_certification, skill_current_digest, skill_listed_at, skill_first_at, skill_installs,
    skill_category, skill_licence, skill_agent, skill_trust, task_state, task_kind,
    task_updated_at, task_due_at, value
) SELECT
    id, key, version, expires_at, searched, collection,
    sub_state, sub_updated_at, sub_created_at, sub_due_at, sub_digest, sub_submitter,
    skill_owner, skill_certification, skill_current_digest, skill_listed_at, skill_first_at, skill_installs,
    skill_category, skill_licence, skill_agent, skill_trust, task_state, task_kind,
    task_updated_at, task_due_at, value
FROM records;
DROP TABLE records;
ALTER TABLE moved_records RENAME TO records;
CREATE INDEX records_expiry ON records (expires_at) WHERE expires_at IS NOT NULL;

-- The audience is a term of the search index.
DROP TABLE IF EXISTS sub_search;
DROP TABLE IF EXISTS skill_search;

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

-- derive: sub
-- derive: skill
