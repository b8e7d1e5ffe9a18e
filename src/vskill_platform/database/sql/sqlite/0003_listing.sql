-- What the marketplace lists by. The columns are those of a skill's `listing`, which it has only while a version is
-- live; lists run along them, and facets are counted by them, so neither offers what cannot be installed.
-- derive: skill
ALTER TABLE records ADD COLUMN skill_listed_at;
ALTER TABLE records ADD COLUMN skill_first_at;
ALTER TABLE records ADD COLUMN skill_installs;
ALTER TABLE records ADD COLUMN skill_category;
ALTER TABLE records ADD COLUMN skill_licence;
ALTER TABLE records ADD COLUMN skill_agent;
ALTER TABLE records ADD COLUMN skill_trust;

DROP INDEX skill_by_updated_at;
DROP INDEX skill_by_created_at;
DROP INDEX skill_by_owner_updated_at;
DROP INDEX skill_by_certification_updated_at;
ALTER TABLE records DROP COLUMN skill_updated_at;
ALTER TABLE records DROP COLUMN skill_created_at;

CREATE INDEX skill_by_listed_at ON records (skill_listed_at, key) WHERE collection = 'skill';
CREATE INDEX skill_by_first_at ON records (skill_first_at, key) WHERE collection = 'skill';
CREATE INDEX skill_by_installs ON records (skill_installs, key) WHERE collection = 'skill';
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

CREATE TRIGGER skill_category_inserted AFTER INSERT ON records WHEN NEW.collection = 'skill'
BEGIN
    INSERT INTO counts VALUES ('skill', 'category', ifnull(NEW.skill_category, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER skill_category_deleted AFTER DELETE ON records WHEN OLD.collection = 'skill'
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'category' AND value = ifnull(OLD.skill_category, x'');
END;
CREATE TRIGGER skill_category_changed AFTER UPDATE OF skill_category ON records
    WHEN NEW.collection = 'skill' AND OLD.skill_category IS NOT NEW.skill_category
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'category' AND value = ifnull(OLD.skill_category, x'');
    INSERT INTO counts VALUES ('skill', 'category', ifnull(NEW.skill_category, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER skill_licence_inserted AFTER INSERT ON records WHEN NEW.collection = 'skill'
BEGIN
    INSERT INTO counts VALUES ('skill', 'licence', ifnull(NEW.skill_licence, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER skill_licence_deleted AFTER DELETE ON records WHEN OLD.collection = 'skill'
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'licence' AND value = ifnull(OLD.skill_licence, x'');
END;
CREATE TRIGGER skill_licence_changed AFTER UPDATE OF skill_licence ON records
    WHEN NEW.collection = 'skill' AND OLD.skill_licence IS NOT NEW.skill_licence
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'licence' AND value = ifnull(OLD.skill_licence, x'');
    INSERT INTO counts VALUES ('skill', 'licence', ifnull(NEW.skill_licence, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER skill_agent_inserted AFTER INSERT ON records WHEN NEW.collection = 'skill'
BEGIN
    INSERT INTO counts VALUES ('skill', 'agent', ifnull(NEW.skill_agent, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER skill_agent_deleted AFTER DELETE ON records WHEN OLD.collection = 'skill'
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'agent' AND value = ifnull(OLD.skill_agent, x'');
END;
CREATE TRIGGER skill_agent_changed AFTER UPDATE OF skill_agent ON records
    WHEN NEW.collection = 'skill' AND OLD.skill_agent IS NOT NEW.skill_agent
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'agent' AND value = ifnull(OLD.skill_agent, x'');
    INSERT INTO counts VALUES ('skill', 'agent', ifnull(NEW.skill_agent, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;

CREATE TRIGGER skill_trust_inserted AFTER INSERT ON records WHEN NEW.collection = 'skill'
BEGIN
    INSERT INTO counts VALUES ('skill', 'trust', ifnull(NEW.skill_trust, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER skill_trust_deleted AFTER DELETE ON records WHEN OLD.collection = 'skill'
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'trust' AND value = ifnull(OLD.skill_trust, x'');
END;
CREATE TRIGGER skill_trust_changed AFTER UPDATE OF skill_trust ON records
    WHEN NEW.collection = 'skill' AND OLD.skill_trust IS NOT NEW.skill_trust
BEGIN
    UPDATE counts SET n = n - 1
        WHERE collection = 'skill' AND field = 'trust' AND value = ifnull(OLD.skill_trust, x'');
    INSERT INTO counts VALUES ('skill', 'trust', ifnull(NEW.skill_trust, x''), 1)
        ON CONFLICT DO UPDATE SET n = n + 1;
END;

-- Every skill counts as one without a category and so on, until its columns are computed.
INSERT INTO counts SELECT 'skill', 'category', x'', count(*) FROM records WHERE collection = 'skill';
INSERT INTO counts SELECT 'skill', 'licence', x'', count(*) FROM records WHERE collection = 'skill';
INSERT INTO counts SELECT 'skill', 'agent', x'', count(*) FROM records WHERE collection = 'skill';
INSERT INTO counts SELECT 'skill', 'trust', x'', count(*) FROM records WHERE collection = 'skill';
