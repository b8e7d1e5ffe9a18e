-- Written by `make reference` from kv/collections.py: change the declaration, not this file. It is run after the
-- migrations, over a new database or one that has some of it already, and removes nothing.

ALTER TABLE records ADD COLUMN sub_state;
ALTER TABLE records ADD COLUMN sub_updated_at;
ALTER TABLE records ADD COLUMN sub_created_at;
ALTER TABLE records ADD COLUMN sub_due_at;
ALTER TABLE records ADD COLUMN sub_digest;
ALTER TABLE records ADD COLUMN sub_submitter;
ALTER TABLE records ADD COLUMN sub_audience;
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
DROP TRIGGER IF EXISTS sub_state_inserted;
CREATE TRIGGER sub_state_inserted AFTER INSERT ON records WHEN NEW.collection = 'sub'
BEGIN
    INSERT INTO counts VALUES ('sub', 'state', ifnull(NEW.sub_state, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('sub', 'state', ifnull(NEW.sub_audience, x''), ifnull(NEW.sub_state, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS sub_state_deleted;
CREATE TRIGGER sub_state_deleted AFTER DELETE ON records WHEN OLD.collection = 'sub'
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'sub' AND field = 'state' AND value = ifnull(OLD.sub_state, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'sub' AND field = 'state'
            AND audience = ifnull(OLD.sub_audience, x'') AND value = ifnull(OLD.sub_state, x'');
END;
DROP TRIGGER IF EXISTS sub_state_changed;
CREATE TRIGGER sub_state_changed AFTER UPDATE OF sub_state, sub_audience ON records
    WHEN NEW.collection = 'sub' AND (OLD.sub_state IS NOT NEW.sub_state OR OLD.sub_audience IS NOT NEW.sub_audience)
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'sub' AND field = 'state' AND value = ifnull(OLD.sub_state, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'sub' AND field = 'state'
            AND audience = ifnull(OLD.sub_audience, x'') AND value = ifnull(OLD.sub_state, x'');
    INSERT INTO counts VALUES ('sub', 'state', ifnull(NEW.sub_state, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('sub', 'state', ifnull(NEW.sub_audience, x''), ifnull(NEW.sub_state, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS sub_audience_inserted;
CREATE TRIGGER sub_audience_inserted AFTER INSERT ON records WHEN NEW.collection = 'sub'
BEGIN
    INSERT INTO counts VALUES ('sub', 'audience', ifnull(NEW.sub_audience, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('sub', 'audience', ifnull(NEW.sub_audience, x''), ifnull(NEW.sub_audience, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS sub_audience_deleted;
CREATE TRIGGER sub_audience_deleted AFTER DELETE ON records WHEN OLD.collection = 'sub'
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'sub' AND field = 'audience' AND value = ifnull(OLD.sub_audience, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'sub' AND field = 'audience'
            AND audience = ifnull(OLD.sub_audience, x'') AND value = ifnull(OLD.sub_audience, x'');
END;
DROP TRIGGER IF EXISTS sub_audience_changed;
CREATE TRIGGER sub_audience_changed AFTER UPDATE OF sub_audience ON records
    WHEN NEW.collection = 'sub' AND OLD.sub_audience IS NOT NEW.sub_audience
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'sub' AND field = 'audience' AND value = ifnull(OLD.sub_audience, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'sub' AND field = 'audience'
            AND audience = ifnull(OLD.sub_audience, x'') AND value = ifnull(OLD.sub_audience, x'');
    INSERT INTO counts VALUES ('sub', 'audience', ifnull(NEW.sub_audience, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('sub', 'audience', ifnull(NEW.sub_audience, x''), ifnull(NEW.sub_audience, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE VIRTUAL TABLE IF NOT EXISTS sub_search
    USING fts5 (skill_name, repo_url, audience, detail = column, tokenize = 'ascii');
CREATE INDEX IF NOT EXISTS sub_narrow ON records (id, sub_created_at, sub_audience, expires_at, key, collection)
    WHERE collection = 'sub';

ALTER TABLE records ADD COLUMN skill_owner;
ALTER TABLE records ADD COLUMN skill_certification;
ALTER TABLE records ADD COLUMN skill_current_digest;
ALTER TABLE records ADD COLUMN skill_listed_at;
ALTER TABLE records ADD COLUMN skill_first_at;
ALTER TABLE records ADD COLUMN skill_installs;
ALTER TABLE records ADD COLUMN skill_category;
ALTER TABLE records ADD COLUMN skill_licence;
ALTER TABLE records ADD COLUMN skill_agent;
ALTER TABLE records ADD COLUMN skill_trust;
ALTER TABLE records ADD COLUMN skill_weight;
ALTER TABLE records ADD COLUMN skill_without;
ALTER TABLE records ADD COLUMN skill_provenance;
ALTER TABLE records ADD COLUMN skill_min_installs;
ALTER TABLE records ADD COLUMN skill_min_age;
ALTER TABLE records ADD COLUMN skill_audience;
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
DROP TRIGGER IF EXISTS skill_category_inserted;
CREATE TRIGGER skill_category_inserted AFTER INSERT ON records WHEN NEW.collection = 'skill'
BEGIN
    INSERT INTO counts VALUES ('skill', 'category', ifnull(NEW.skill_category, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('skill', 'category', ifnull(NEW.skill_audience, x''), ifnull(NEW.skill_category, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS skill_category_deleted;
CREATE TRIGGER skill_category_deleted AFTER DELETE ON records WHEN OLD.collection = 'skill'
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'category' AND value = ifnull(OLD.skill_category, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'category'
            AND audience = ifnull(OLD.skill_audience, x'') AND value = ifnull(OLD.skill_category, x'');
END;
DROP TRIGGER IF EXISTS skill_category_changed;
CREATE TRIGGER skill_category_changed AFTER UPDATE OF skill_category, skill_audience ON records
    WHEN NEW.collection = 'skill' AND (OLD.skill_category IS NOT NEW.skill_category OR OLD.skill_audience IS NOT NEW.skill_audience)
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'category' AND value = ifnull(OLD.skill_category, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'category'
            AND audience = ifnull(OLD.skill_audience, x'') AND value = ifnull(OLD.skill_category, x'');
    INSERT INTO counts VALUES ('skill', 'category', ifnull(NEW.skill_category, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('skill', 'category', ifnull(NEW.skill_audience, x''), ifnull(NEW.skill_category, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS skill_licence_inserted;
CREATE TRIGGER skill_licence_inserted AFTER INSERT ON records WHEN NEW.collection = 'skill'
BEGIN
    INSERT INTO counts VALUES ('skill', 'licence', ifnull(NEW.skill_licence, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('skill', 'licence', ifnull(NEW.skill_audience, x''), ifnull(NEW.skill_licence, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS skill_licence_deleted;
CREATE TRIGGER skill_licence_deleted AFTER DELETE ON records WHEN OLD.collection = 'skill'
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'licence' AND value = ifnull(OLD.skill_licence, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'licence'
            AND audience = ifnull(OLD.skill_audience, x'') AND value = ifnull(OLD.skill_licence, x'');
END;
DROP TRIGGER IF EXISTS skill_licence_changed;
CREATE TRIGGER skill_licence_changed AFTER UPDATE OF skill_licence, skill_audience ON records
    WHEN NEW.collection = 'skill' AND (OLD.skill_licence IS NOT NEW.skill_licence OR OLD.skill_audience IS NOT NEW.skill_audience)
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'licence' AND value = ifnull(OLD.skill_licence, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'licence'
            AND audience = ifnull(OLD.skill_audience, x'') AND value = ifnull(OLD.skill_licence, x'');
    INSERT INTO counts VALUES ('skill', 'licence', ifnull(NEW.skill_licence, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('skill', 'licence', ifnull(NEW.skill_audience, x''), ifnull(NEW.skill_licence, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS skill_agent_inserted;
CREATE TRIGGER skill_agent_inserted AFTER INSERT ON records WHEN NEW.collection = 'skill'
BEGIN
    INSERT INTO counts VALUES ('skill', 'agent', ifnull(NEW.skill_agent, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('skill', 'agent', ifnull(NEW.skill_audience, x''), ifnull(NEW.skill_agent, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS skill_agent_deleted;
CREATE TRIGGER skill_agent_deleted AFTER DELETE ON records WHEN OLD.collection = 'skill'
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'agent' AND value = ifnull(OLD.skill_agent, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'agent'
            AND audience = ifnull(OLD.skill_audience, x'') AND value = ifnull(OLD.skill_agent, x'');
END;
DROP TRIGGER IF EXISTS skill_agent_changed;
CREATE TRIGGER skill_agent_changed AFTER UPDATE OF skill_agent, skill_audience ON records
    WHEN NEW.collection = 'skill' AND (OLD.skill_agent IS NOT NEW.skill_agent OR OLD.skill_audience IS NOT NEW.skill_audience)
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'agent' AND value = ifnull(OLD.skill_agent, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'agent'
            AND audience = ifnull(OLD.skill_audience, x'') AND value = ifnull(OLD.skill_agent, x'');
    INSERT INTO counts VALUES ('skill', 'agent', ifnull(NEW.skill_agent, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('skill', 'agent', ifnull(NEW.skill_audience, x''), ifnull(NEW.skill_agent, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS skill_trust_inserted;
CREATE TRIGGER skill_trust_inserted AFTER INSERT ON records WHEN NEW.collection = 'skill'
BEGIN
    INSERT INTO counts VALUES ('skill', 'trust', ifnull(NEW.skill_trust, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('skill', 'trust', ifnull(NEW.skill_audience, x''), ifnull(NEW.skill_trust, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS skill_trust_deleted;
CREATE TRIGGER skill_trust_deleted AFTER DELETE ON records WHEN OLD.collection = 'skill'
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'trust' AND value = ifnull(OLD.skill_trust, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'trust'
            AND audience = ifnull(OLD.skill_audience, x'') AND value = ifnull(OLD.skill_trust, x'');
END;
DROP TRIGGER IF EXISTS skill_trust_changed;
CREATE TRIGGER skill_trust_changed AFTER UPDATE OF skill_trust, skill_audience ON records
    WHEN NEW.collection = 'skill' AND (OLD.skill_trust IS NOT NEW.skill_trust OR OLD.skill_audience IS NOT NEW.skill_audience)
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'trust' AND value = ifnull(OLD.skill_trust, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'trust'
            AND audience = ifnull(OLD.skill_audience, x'') AND value = ifnull(OLD.skill_trust, x'');
    INSERT INTO counts VALUES ('skill', 'trust', ifnull(NEW.skill_trust, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('skill', 'trust', ifnull(NEW.skill_audience, x''), ifnull(NEW.skill_trust, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS skill_certification_inserted;
CREATE TRIGGER skill_certification_inserted AFTER INSERT ON records WHEN NEW.collection = 'skill'
BEGIN
    INSERT INTO counts VALUES ('skill', 'certification', ifnull(NEW.skill_certification, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('skill', 'certification', ifnull(NEW.skill_audience, x''), ifnull(NEW.skill_certification, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS skill_certification_deleted;
CREATE TRIGGER skill_certification_deleted AFTER DELETE ON records WHEN OLD.collection = 'skill'
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'certification' AND value = ifnull(OLD.skill_certification, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'certification'
            AND audience = ifnull(OLD.skill_audience, x'') AND value = ifnull(OLD.skill_certification, x'');
END;
DROP TRIGGER IF EXISTS skill_certification_changed;
CREATE TRIGGER skill_certification_changed AFTER UPDATE OF skill_certification, skill_audience ON records
    WHEN NEW.collection = 'skill' AND (OLD.skill_certification IS NOT NEW.skill_certification OR OLD.skill_audience IS NOT NEW.skill_audience)
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'certification' AND value = ifnull(OLD.skill_certification, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'certification'
            AND audience = ifnull(OLD.skill_audience, x'') AND value = ifnull(OLD.skill_certification, x'');
    INSERT INTO counts VALUES ('skill', 'certification', ifnull(NEW.skill_certification, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('skill', 'certification', ifnull(NEW.skill_audience, x''), ifnull(NEW.skill_certification, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS skill_without_inserted;
CREATE TRIGGER skill_without_inserted AFTER INSERT ON records WHEN NEW.collection = 'skill'
BEGIN
    INSERT INTO counts VALUES ('skill', 'without', ifnull(NEW.skill_without, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('skill', 'without', ifnull(NEW.skill_audience, x''), ifnull(NEW.skill_without, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS skill_without_deleted;
CREATE TRIGGER skill_without_deleted AFTER DELETE ON records WHEN OLD.collection = 'skill'
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'without' AND value = ifnull(OLD.skill_without, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'without'
            AND audience = ifnull(OLD.skill_audience, x'') AND value = ifnull(OLD.skill_without, x'');
END;
DROP TRIGGER IF EXISTS skill_without_changed;
CREATE TRIGGER skill_without_changed AFTER UPDATE OF skill_without, skill_audience ON records
    WHEN NEW.collection = 'skill' AND (OLD.skill_without IS NOT NEW.skill_without OR OLD.skill_audience IS NOT NEW.skill_audience)
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'without' AND value = ifnull(OLD.skill_without, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'without'
            AND audience = ifnull(OLD.skill_audience, x'') AND value = ifnull(OLD.skill_without, x'');
    INSERT INTO counts VALUES ('skill', 'without', ifnull(NEW.skill_without, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('skill', 'without', ifnull(NEW.skill_audience, x''), ifnull(NEW.skill_without, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS skill_provenance_inserted;
CREATE TRIGGER skill_provenance_inserted AFTER INSERT ON records WHEN NEW.collection = 'skill'
BEGIN
    INSERT INTO counts VALUES ('skill', 'provenance', ifnull(NEW.skill_provenance, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('skill', 'provenance', ifnull(NEW.skill_audience, x''), ifnull(NEW.skill_provenance, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS skill_provenance_deleted;
CREATE TRIGGER skill_provenance_deleted AFTER DELETE ON records WHEN OLD.collection = 'skill'
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'provenance' AND value = ifnull(OLD.skill_provenance, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'provenance'
            AND audience = ifnull(OLD.skill_audience, x'') AND value = ifnull(OLD.skill_provenance, x'');
END;
DROP TRIGGER IF EXISTS skill_provenance_changed;
CREATE TRIGGER skill_provenance_changed AFTER UPDATE OF skill_provenance, skill_audience ON records
    WHEN NEW.collection = 'skill' AND (OLD.skill_provenance IS NOT NEW.skill_provenance OR OLD.skill_audience IS NOT NEW.skill_audience)
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'provenance' AND value = ifnull(OLD.skill_provenance, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'provenance'
            AND audience = ifnull(OLD.skill_audience, x'') AND value = ifnull(OLD.skill_provenance, x'');
    INSERT INTO counts VALUES ('skill', 'provenance', ifnull(NEW.skill_provenance, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('skill', 'provenance', ifnull(NEW.skill_audience, x''), ifnull(NEW.skill_provenance, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS skill_min_installs_inserted;
CREATE TRIGGER skill_min_installs_inserted AFTER INSERT ON records WHEN NEW.collection = 'skill'
BEGIN
    INSERT INTO counts VALUES ('skill', 'min_installs', ifnull(NEW.skill_min_installs, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('skill', 'min_installs', ifnull(NEW.skill_audience, x''), ifnull(NEW.skill_min_installs, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS skill_min_installs_deleted;
CREATE TRIGGER skill_min_installs_deleted AFTER DELETE ON records WHEN OLD.collection = 'skill'
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'min_installs' AND value = ifnull(OLD.skill_min_installs, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'min_installs'
            AND audience = ifnull(OLD.skill_audience, x'') AND value = ifnull(OLD.skill_min_installs, x'');
END;
DROP TRIGGER IF EXISTS skill_min_installs_changed;
CREATE TRIGGER skill_min_installs_changed AFTER UPDATE OF skill_min_installs, skill_audience ON records
    WHEN NEW.collection = 'skill' AND (OLD.skill_min_installs IS NOT NEW.skill_min_installs OR OLD.skill_audience IS NOT NEW.skill_audience)
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'min_installs' AND value = ifnull(OLD.skill_min_installs, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'min_installs'
            AND audience = ifnull(OLD.skill_audience, x'') AND value = ifnull(OLD.skill_min_installs, x'');
    INSERT INTO counts VALUES ('skill', 'min_installs', ifnull(NEW.skill_min_installs, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('skill', 'min_installs', ifnull(NEW.skill_audience, x''), ifnull(NEW.skill_min_installs, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS skill_min_age_inserted;
CREATE TRIGGER skill_min_age_inserted AFTER INSERT ON records WHEN NEW.collection = 'skill'
BEGIN
    INSERT INTO counts VALUES ('skill', 'min_age', ifnull(NEW.skill_min_age, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('skill', 'min_age', ifnull(NEW.skill_audience, x''), ifnull(NEW.skill_min_age, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS skill_min_age_deleted;
CREATE TRIGGER skill_min_age_deleted AFTER DELETE ON records WHEN OLD.collection = 'skill'
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'min_age' AND value = ifnull(OLD.skill_min_age, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'min_age'
            AND audience = ifnull(OLD.skill_audience, x'') AND value = ifnull(OLD.skill_min_age, x'');
END;
DROP TRIGGER IF EXISTS skill_min_age_changed;
CREATE TRIGGER skill_min_age_changed AFTER UPDATE OF skill_min_age, skill_audience ON records
    WHEN NEW.collection = 'skill' AND (OLD.skill_min_age IS NOT NEW.skill_min_age OR OLD.skill_audience IS NOT NEW.skill_audience)
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'min_age' AND value = ifnull(OLD.skill_min_age, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'min_age'
            AND audience = ifnull(OLD.skill_audience, x'') AND value = ifnull(OLD.skill_min_age, x'');
    INSERT INTO counts VALUES ('skill', 'min_age', ifnull(NEW.skill_min_age, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('skill', 'min_age', ifnull(NEW.skill_audience, x''), ifnull(NEW.skill_min_age, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS skill_audience_inserted;
CREATE TRIGGER skill_audience_inserted AFTER INSERT ON records WHEN NEW.collection = 'skill'
BEGIN
    INSERT INTO counts VALUES ('skill', 'audience', ifnull(NEW.skill_audience, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('skill', 'audience', ifnull(NEW.skill_audience, x''), ifnull(NEW.skill_audience, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS skill_audience_deleted;
CREATE TRIGGER skill_audience_deleted AFTER DELETE ON records WHEN OLD.collection = 'skill'
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'audience' AND value = ifnull(OLD.skill_audience, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'audience'
            AND audience = ifnull(OLD.skill_audience, x'') AND value = ifnull(OLD.skill_audience, x'');
END;
DROP TRIGGER IF EXISTS skill_audience_changed;
CREATE TRIGGER skill_audience_changed AFTER UPDATE OF skill_audience ON records
    WHEN NEW.collection = 'skill' AND OLD.skill_audience IS NOT NEW.skill_audience
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'audience' AND value = ifnull(OLD.skill_audience, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'audience'
            AND audience = ifnull(OLD.skill_audience, x'') AND value = ifnull(OLD.skill_audience, x'');
    INSERT INTO counts VALUES ('skill', 'audience', ifnull(NEW.skill_audience, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('skill', 'audience', ifnull(NEW.skill_audience, x''), ifnull(NEW.skill_audience, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE VIRTUAL TABLE IF NOT EXISTS skill_search
    USING fts5 (name, canonical, description, audience, detail = column, tokenize = 'ascii');
CREATE INDEX IF NOT EXISTS skill_narrow ON records (id, skill_weight, skill_audience, expires_at, key, collection)
    WHERE collection = 'skill';

ALTER TABLE records ADD COLUMN task_state;
ALTER TABLE records ADD COLUMN task_kind;
ALTER TABLE records ADD COLUMN task_updated_at;
ALTER TABLE records ADD COLUMN task_due_at;
CREATE INDEX IF NOT EXISTS task_by_state_due_at ON records (task_state, task_due_at, key)
    WHERE collection = 'task';
CREATE INDEX IF NOT EXISTS task_by_kind_updated_at ON records (task_kind, task_updated_at, key)
    WHERE collection = 'task';
DROP TRIGGER IF EXISTS task_state_inserted;
CREATE TRIGGER task_state_inserted AFTER INSERT ON records WHEN NEW.collection = 'task'
BEGIN
    INSERT INTO counts VALUES ('task', 'state', ifnull(NEW.task_state, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS task_state_deleted;
CREATE TRIGGER task_state_deleted AFTER DELETE ON records WHEN OLD.collection = 'task'
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'task' AND field = 'state' AND value = ifnull(OLD.task_state, x'');
END;
DROP TRIGGER IF EXISTS task_state_changed;
CREATE TRIGGER task_state_changed AFTER UPDATE OF task_state ON records
    WHEN NEW.collection = 'task' AND OLD.task_state IS NOT NEW.task_state
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'task' AND field = 'state' AND value = ifnull(OLD.task_state, x'');
    INSERT INTO counts VALUES ('task', 'state', ifnull(NEW.task_state, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;

ALTER TABLE records ADD COLUMN sketch_hashes;
ALTER TABLE records ADD COLUMN sketch_audience;
CREATE INDEX IF NOT EXISTS sketch_by_audience ON records (sketch_audience, key)
    WHERE collection = 'sketch';
DROP TRIGGER IF EXISTS sketch_audience_inserted;
CREATE TRIGGER sketch_audience_inserted AFTER INSERT ON records WHEN NEW.collection = 'sketch'
BEGIN
    INSERT INTO counts VALUES ('sketch', 'audience', ifnull(NEW.sketch_audience, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('sketch', 'audience', ifnull(NEW.sketch_audience, x''), ifnull(NEW.sketch_audience, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
DROP TRIGGER IF EXISTS sketch_audience_deleted;
CREATE TRIGGER sketch_audience_deleted AFTER DELETE ON records WHEN OLD.collection = 'sketch'
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'sketch' AND field = 'audience' AND value = ifnull(OLD.sketch_audience, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'sketch' AND field = 'audience'
            AND audience = ifnull(OLD.sketch_audience, x'') AND value = ifnull(OLD.sketch_audience, x'');
END;
DROP TRIGGER IF EXISTS sketch_audience_changed;
CREATE TRIGGER sketch_audience_changed AFTER UPDATE OF sketch_audience ON records
    WHEN NEW.collection = 'sketch' AND OLD.sketch_audience IS NOT NEW.sketch_audience
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'sketch' AND field = 'audience' AND value = ifnull(OLD.sketch_audience, x'');
    UPDATE audience_counts SET n = n - 1
        WHERE collection = 'sketch' AND field = 'audience'
            AND audience = ifnull(OLD.sketch_audience, x'') AND value = ifnull(OLD.sketch_audience, x'');
    INSERT INTO counts VALUES ('sketch', 'audience', ifnull(NEW.sketch_audience, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
    INSERT INTO audience_counts
        VALUES ('sketch', 'audience', ifnull(NEW.sketch_audience, x''), ifnull(NEW.sketch_audience, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TABLE IF NOT EXISTS sketch_numbers (
    number INTEGER NOT NULL,
    family TEXT NOT NULL,
    record INTEGER NOT NULL,
    PRIMARY KEY (number, family, record)
) WITHOUT ROWID;
DROP TRIGGER IF EXISTS sketch_numbers_inserted;
CREATE TRIGGER sketch_numbers_inserted AFTER INSERT ON records WHEN NEW.collection = 'sketch'
BEGIN
    INSERT OR IGNORE INTO sketch_numbers
        SELECT value, substr(substr(NEW.key, 8), 1, instr(substr(NEW.key, 8) || '/', '/') - 1), NEW.id FROM json_each(NEW.sketch_hashes);
END;
DROP TRIGGER IF EXISTS sketch_numbers_deleted;
CREATE TRIGGER sketch_numbers_deleted AFTER DELETE ON records WHEN OLD.collection = 'sketch'
BEGIN
    DELETE FROM sketch_numbers WHERE family = substr(substr(OLD.key, 8), 1, instr(substr(OLD.key, 8) || '/', '/') - 1)
        AND record = OLD.id AND number IN (SELECT value FROM json_each(OLD.sketch_hashes));
END;
DROP TRIGGER IF EXISTS sketch_numbers_changed;
CREATE TRIGGER sketch_numbers_changed AFTER UPDATE OF sketch_hashes ON records
    WHEN NEW.collection = 'sketch' AND OLD.sketch_hashes IS NOT NEW.sketch_hashes
BEGIN
    DELETE FROM sketch_numbers WHERE family = substr(substr(OLD.key, 8), 1, instr(substr(OLD.key, 8) || '/', '/') - 1)
        AND record = OLD.id AND number IN (SELECT value FROM json_each(OLD.sketch_hashes));
    INSERT OR IGNORE INTO sketch_numbers
        SELECT value, substr(substr(NEW.key, 8), 1, instr(substr(NEW.key, 8) || '/', '/') - 1), NEW.id FROM json_each(NEW.sketch_hashes);
END;
