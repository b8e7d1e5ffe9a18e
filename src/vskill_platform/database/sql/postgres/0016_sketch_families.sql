-- The integers of sketches stand by family, which is the owner of the skill, so that an owner's own are passed over. The
-- generated script makes the triggers anew.
LOCK TABLE records IN ACCESS EXCLUSIVE MODE;
ALTER TABLE records ADD COLUMN IF NOT EXISTS sketch_hashes bigint[];
DROP TABLE IF EXISTS sketch_numbers;
CREATE TABLE sketch_numbers (
    number bigint NOT NULL,
    family text COLLATE "C" NOT NULL,
    record bigint NOT NULL
);
INSERT INTO sketch_numbers
    SELECT DISTINCT unnest(sketch_hashes), split_part(substr(key, 8), '/', 1), hashtextextended(key, 0)
    FROM records WHERE collection = 'sketch';
ALTER TABLE sketch_numbers ADD PRIMARY KEY (number, family, record);
ANALYZE sketch_numbers;
