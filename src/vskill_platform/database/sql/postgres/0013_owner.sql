-- Whose work a message is, so that one owner's many messages leave room for the others'; empty: nobody's.
ALTER TABLE messages ADD COLUMN owner text COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX messages_by_owner ON messages (owner, visible_at, id) WHERE owner <> '';

-- As `send_messages` without owners, which processes of the release before this one still call.
CREATE FUNCTION send_messages(
    keys text[], times bigint[], bodies bytea[], owners text[], now bigint, latest bigint
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
    new bigint;
BEGIN
    INSERT INTO messages (key, visible_at, sent_at, body, owner)
    SELECT one.key, one.at, now, one.body, one.owner
    FROM unnest(keys, times, bodies, owners) AS one (key, at, body, owner)
    ON CONFLICT (key) DO NOTHING;
    GET DIAGNOSTICS new = ROW_COUNT;
    before := cardinality(keys) - new;
    IF before > 0 THEN
        UPDATE messages SET visible_at = one.at
        FROM unnest(keys, times) AS one (key, at)
        WHERE messages.key = one.key AND messages.visible_at > one.at
            AND (NOT messages.leased OR messages.visible_at > latest);
    END IF;
    PERFORM pg_notify('vskill_messages', '');
    RETURN new;
END;
$$;
