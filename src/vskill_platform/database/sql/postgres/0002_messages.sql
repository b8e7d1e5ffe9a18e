-- The queue. `visible_at` is the one time that a message has: when it may be taken. A delay and a lease both move
-- it, so the earliest visible one is always the fair next one.
CREATE TABLE messages (
    -- never given twice, so that an id and a number of deliveries name one lease
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- at most one live message per key; any number without one
    key text COLLATE "C" UNIQUE,
    visible_at bigint NOT NULL,
    leased boolean NOT NULL DEFAULT false,
    deliveries integer NOT NULL DEFAULT 0,
    sent_at bigint NOT NULL,
    body bytea NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX messages_by_visible_at ON messages (visible_at, id);

CREATE TABLE dead_letters (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text,
    reason text NOT NULL,
    deliveries integer NOT NULL,
    sent_at bigint NOT NULL,
    died_at bigint NOT NULL,
    body bytea NOT NULL
);

-- Queue messages; how many are new. A waiting one of the same key is pulled forward to the earlier time; one that
-- a worker holds stays as it is, unless its lease ends later than any lease can (`latest`): then it has ended.
-- Keys come sorted and each once, so two senders never wait for each other in a circle.
CREATE FUNCTION send_messages(keys text[], times bigint[], bodies bytea[], now bigint, latest bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
    new bigint;
BEGIN
    INSERT INTO messages (key, visible_at, sent_at, body)
    SELECT one.key, one.at, now, one.body FROM unnest(keys, times, bodies) AS one (key, at, body)
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
