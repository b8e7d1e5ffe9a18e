-- Searched words are stemmed, and the index keeps no positions.
-- derive: sub
-- derive: skill
DROP TABLE IF EXISTS sub_search;
DROP TABLE IF EXISTS skill_search;
