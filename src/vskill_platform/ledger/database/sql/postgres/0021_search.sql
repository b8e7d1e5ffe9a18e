-- Searched words are stemmed, and those of names have no index of their own.
-- derive: sub
-- derive: skill
DROP INDEX IF EXISTS sub_telling, skill_telling, sub_weighed, skill_weighed;
DROP STATISTICS IF EXISTS sub_telling_common, skill_telling_common;
