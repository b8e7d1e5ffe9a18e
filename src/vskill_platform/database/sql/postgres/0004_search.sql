-- Search per kind, and the words of the most telling field by themselves. One index over all kinds gave every search the
-- matches of the others; and it knows words, not the fields that they stand in, so a word that all descriptions have and
-- no name has was looked for in every record.
--
-- The statistics say how common a word is among the records of its kind. By them the server decides between the index,
-- which collects all matches first, and a walk that ends when it has enough of a word that most have.
CREATE INDEX sub_words ON records USING gin ((CASE WHEN collection = 'sub' THEN terms END))
    WHERE (CASE WHEN collection = 'sub' THEN terms END) IS NOT NULL;
CREATE INDEX sub_telling ON records USING gin ((CASE WHEN collection = 'sub' THEN ts_filter(terms, '{a}') END))
    WHERE (CASE WHEN collection = 'sub' THEN ts_filter(terms, '{a}') END) IS NOT NULL;
CREATE INDEX skill_words ON records USING gin ((CASE WHEN collection = 'skill' THEN terms END))
    WHERE (CASE WHEN collection = 'skill' THEN terms END) IS NOT NULL;
CREATE INDEX skill_telling ON records USING gin ((CASE WHEN collection = 'skill' THEN ts_filter(terms, '{a}') END))
    WHERE (CASE WHEN collection = 'skill' THEN ts_filter(terms, '{a}') END) IS NOT NULL;
DROP INDEX records_terms;

CREATE STATISTICS sub_words_common ON (CASE WHEN collection = 'sub' THEN terms END) FROM records;
CREATE STATISTICS sub_telling_common ON (CASE WHEN collection = 'sub' THEN ts_filter(terms, '{a}') END) FROM records;
CREATE STATISTICS skill_words_common ON (CASE WHEN collection = 'skill' THEN terms END) FROM records;
CREATE STATISTICS skill_telling_common ON (CASE WHEN collection = 'skill' THEN ts_filter(terms, '{a}') END)
    FROM records;
ANALYZE records;
