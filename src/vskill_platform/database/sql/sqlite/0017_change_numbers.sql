-- The upper bits of a change's number are the store's own number, drawn once, so that a cursor which a backup or a copy
-- brought along from another store is never taken for a place in this one. A store that has changes already is number 0.
INSERT INTO sqlite_sequence (name, seq)
    SELECT 'changes', (1 + abs(random() % 4194303)) << 40
    WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'changes');
UPDATE changes_swept SET seq = (SELECT seq FROM sqlite_sequence WHERE name = 'changes')
    WHERE seq = 0 AND NOT EXISTS (SELECT 1 FROM changes);
