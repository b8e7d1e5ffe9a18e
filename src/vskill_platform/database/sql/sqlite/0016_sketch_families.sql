-- The integers of sketches stand by family, which is the owner of the skill, so that an owner's own are passed over. The
-- generated script makes the triggers anew.
DROP TABLE IF EXISTS sketch_numbers;
CREATE TABLE sketch_numbers (
    number INTEGER NOT NULL,
    family TEXT NOT NULL,
    record INTEGER NOT NULL,
    PRIMARY KEY (number, family, record)
) WITHOUT ROWID;
INSERT OR IGNORE INTO sketch_numbers
    SELECT held.value, substr(substr(records.key, 8), 1, instr(substr(records.key, 8) || '/', '/') - 1), records.id
    FROM records, json_each(sketch_hashes) AS held WHERE collection = 'sketch' ORDER BY 1, 2, 3;
