-- What a skill's text has in common with others is a record of its own. Its columns stand before the value like all
-- others, so the records are moved, as they were for the weight; the generated script makes their indexes and triggers
-- anew, and the table of its integers. Skills that were published before get one when the rules judge them again.
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
    skill_weight,
    skill_audience,
    task_state,
    task_kind,
    task_updated_at,
    task_due_at,
    sketch_hashes,
    sketch_audience,
    value TEXT NOT NULL
);
INSERT INTO moved_records (
    id, key, version, expires_at, searched, collection, sub_state, sub_updated_at, sub_created_at, sub_due_at,
    sub_digest, sub_submitter, sub_audience, skill_owner, skill_certification, skill_current_digest,
    skill_listed_at, skill_first_at, skill_installs, skill_category, skill_licence, skill_agent, skill_trust,
    skill_weight, skill_audience, task_state, task_kind, task_updated_at, task_due_at, value
) SELECT
    id, key, version, expires_at, searched, collection, sub_state, sub_updated_at, sub_created_at, sub_due_at,
    sub_digest, sub_submitter, sub_audience, skill_owner, skill_certification, skill_current_digest,
    skill_listed_at, skill_first_at, skill_installs, skill_category, skill_licence, skill_agent, skill_trust,
    skill_weight, skill_audience, task_state, task_kind, task_updated_at, task_due_at, value
FROM records;
DROP TABLE records;
ALTER TABLE moved_records RENAME TO records;
CREATE INDEX records_expiry ON records (expires_at) WHERE expires_at IS NOT NULL;
