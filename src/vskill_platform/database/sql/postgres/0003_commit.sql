-- One commit in one round trip: all of it, or nothing and the reason.
--
-- Every key that is written or asserted is locked first, in one order for everybody, whether or not a record is there:
-- so an assertion that a key is absent holds until the end, and no two commits wait for each other in a circle.
-- What is read afterwards is what is there, because each statement sees what was committed before it began.
CREATE FUNCTION commit_records(
    written text[],
    asserted text[],
    -- keys whose version is compared, and with what; 0 is absent
    expected_keys text[],
    expected_versions bigint[],
    -- records to write, as rows of the table; their version is given here
    puts json,
    -- counters: rows like the others, with `n` beside them
    adds json,
    deletes text[],
    -- keys that are written and whose change is told
    told text[],
    now bigint,
    OUT version bigint,
    OUT refused_key text,
    OUT refused_version bigint
) LANGUAGE plpgsql AS $$
DECLARE
    lock record;
    base records;
    gone_of bigint;
    told_of bigint;
BEGIN
    FOR lock IN
        SELECT hashtextextended(one.key, 0) AS number, bool_or(one.writes) AS writes
        FROM (SELECT unnest(written) AS key, true AS writes UNION ALL SELECT unnest(asserted), false) AS one
        GROUP BY 1 ORDER BY 1
    LOOP
        IF lock.writes THEN
            PERFORM pg_advisory_xact_lock(lock.number);
        ELSE
            PERFORM pg_advisory_xact_lock_shared(lock.number);
        END IF;
    END LOOP;

    SELECT wanted.key, coalesce(there.version, 0) INTO refused_key, refused_version
    FROM unnest(expected_keys, expected_versions) WITH ORDINALITY AS wanted (key, version, place)
    LEFT JOIN records AS there
        ON there.key = wanted.key AND (there.expires_at IS NULL OR there.expires_at > now)
    WHERE coalesce(there.version, 0) <> wanted.version
    ORDER BY wanted.place LIMIT 1;
    IF refused_key IS NOT NULL THEN
        RETURN;
    END IF;

    IF adds IS NOT NULL THEN
        SELECT there.key, -1 INTO refused_key, refused_version
        FROM json_populate_recordset(NULL::records, adds) AS one JOIN records AS there ON there.key = one.key
        WHERE (there.expires_at IS NULL OR there.expires_at > now) AND there.value !~ '^-?[0-9]{1,18}$'
        LIMIT 1;
        IF refused_key IS NOT NULL THEN
            RETURN;
        END IF;
    END IF;

    version := nextval('versions');

    WITH gone AS (
        DELETE FROM records WHERE key = ANY (deletes) RETURNING key, expires_at
    )
    INSERT INTO changes (key, version, deleted, at)
    SELECT gone.key, commit_records.version, true, now FROM gone WHERE gone.expires_at IS NULL OR gone.expires_at > now;
    GET DIAGNOSTICS gone_of = ROW_COUNT;

    IF adds IS NOT NULL THEN
        INSERT INTO records (key, version, collection, value)
        SELECT one.key, commit_records.version, one.collection, (coalesce(there.value, '0')::bigint + one.n)::text
        FROM json_to_recordset(adds) AS one (key text, collection text, n bigint)
        LEFT JOIN records AS there ON there.key = one.key AND (there.expires_at IS NULL OR there.expires_at > now)
        ON CONFLICT (key) DO UPDATE SET
            version = excluded.version, expires_at = NULL, value = excluded.value;
    END IF;

    IF puts IS NOT NULL THEN
        base.version := version;
        INSERT INTO records SELECT * FROM json_populate_recordset(base, puts)
        ON CONFLICT (key) DO UPDATE SET
            version = excluded.version, expires_at = excluded.expires_at, collection = excluded.collection,
            sub_state = excluded.sub_state, sub_updated_at = excluded.sub_updated_at, sub_created_at =
            excluded.sub_created_at, sub_due_at = excluded.sub_due_at, sub_digest = excluded.sub_digest,
            sub_submitter = excluded.sub_submitter, skill_owner = excluded.skill_owner, skill_certification =
            excluded.skill_certification, skill_current_digest = excluded.skill_current_digest,
            skill_listed_at = excluded.skill_listed_at, skill_first_at = excluded.skill_first_at,
            skill_installs = excluded.skill_installs, skill_category = excluded.skill_category, skill_licence
            = excluded.skill_licence, skill_agent = excluded.skill_agent, skill_trust = excluded.skill_trust,
            task_state = excluded.task_state, task_kind = excluded.task_kind, task_updated_at =
            excluded.task_updated_at, task_due_at = excluded.task_due_at, terms = excluded.terms, value =
            excluded.value;
    END IF;

    INSERT INTO changes (key, version, deleted, at)
    SELECT one.key, commit_records.version, false, now FROM unnest(told) AS one (key);
    GET DIAGNOSTICS told_of = ROW_COUNT;

    IF gone_of + told_of > 0 THEN
        PERFORM pg_notify('vskill_changes', '');
    END IF;
END;
$$;
