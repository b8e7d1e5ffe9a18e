-- The upper bits of a change's number are the store's own number, drawn once, so that a cursor which a backup or a copy
-- brought along from another store is never taken for a place in this one. A store that has changes already is number 0.
WITH drawn AS (
    UPDATE changes_swept SET seq = (1 + floor(random() * 4194303))::bigint << 40
    WHERE seq = 0 AND NOT EXISTS (SELECT 1 FROM changes) RETURNING seq
)
SELECT setval(pg_get_serial_sequence('changes', 'seq'), seq) FROM drawn;
