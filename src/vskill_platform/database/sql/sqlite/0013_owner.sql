-- Whose work a message is, so that one owner's many messages leave room for the others'; empty: nobody's.
ALTER TABLE messages ADD COLUMN owner TEXT NOT NULL DEFAULT '';
CREATE INDEX messages_by_owner ON messages (owner, visible_at, id) WHERE owner <> '';
