-- The indexes of words hold the audience too, so that a reader of few records finds those among all that match. The generated
-- script makes them anew.
DROP INDEX IF EXISTS sub_words, sub_telling, skill_words, skill_telling;
