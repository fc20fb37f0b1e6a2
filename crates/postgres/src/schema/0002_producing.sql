-- What happens when an event is written. All of it runs inside the producer's own transaction.
--
-- Writers of one aggregate queue on its outbox_lane row and hold it until they commit. The lock makes no new row
-- version, so a hot aggregate does not slow down while somebody else's snapshot pins the dead ones. The sequence is
-- read from the tail of the unique index rather than counted, so a rollback, a savepoint or a repeated event_id
-- cannot leave a gap. The id is drawn after the lock: within an aggregate, id order = sequence order = commit order.
--
-- READ COMMITTED: the statement that reads the tail begins after the lock was granted and sees what its holder
-- committed. REPEATABLE READ and SERIALIZABLE may see an older tail; the unique constraint outbox_aggregate_seq_key
-- then refuses the row, and the transaction is to be retried.

-- Says what is wrong with a row that outbox_before_insert refused.
CREATE FUNCTION outbox_refuse(event outbox) RETURNS void
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
AS $$
DECLARE
    field record;
BEGIN
    FOR field IN VALUES
        ('aggregate_type', event.aggregate_type),
        ('aggregate_id', event.aggregate_id),
        ('event_type', event.event_type)
    LOOP
        IF field.column2 IS NULL OR field.column2 = '' THEN
            RAISE EXCEPTION 'outbox: % is empty', field.column1
                USING ERRCODE = 'check_violation', TABLE = 'outbox', COLUMN = field.column1,
                    CONSTRAINT = 'outbox_' || field.column1 || '_empty';
        ELSIF octet_length(field.column2) > 512 THEN
            RAISE EXCEPTION 'outbox: % has % bytes, the limit is 512', field.column1, octet_length(field.column2)
                USING ERRCODE = 'check_violation', TABLE = 'outbox', COLUMN = field.column1,
                    CONSTRAINT = 'outbox_' || field.column1 || '_length';
        ELSIF field.column2 ~ '[\u0001-\u001f\u007f-\u009f]' THEN
            RAISE EXCEPTION 'outbox: % holds a control character', field.column1
                USING ERRCODE = 'check_violation', TABLE = 'outbox', COLUMN = field.column1,
                    CONSTRAINT = 'outbox_' || field.column1 || '_characters';
        END IF;
    END LOOP;
    IF event.event_type ~ '[\s\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]' THEN
        RAISE EXCEPTION 'outbox: event_type "%" holds a space', event.event_type
            USING ERRCODE = 'check_violation', TABLE = 'outbox', COLUMN = 'event_type',
                CONSTRAINT = 'outbox_event_type_characters',
                HINT = 'Event types are matched by patterns and sent in headers: write order.confirmed, not "order confirmed".';
    END IF;
    RAISE EXCEPTION 'outbox: headers must be a JSON object whose values are all text'
        USING ERRCODE = 'check_violation', TABLE = 'outbox', COLUMN = 'headers', CONSTRAINT = 'outbox_headers_object',
            HINT = 'For example {"tenant": "acme", "traceparent": "00-..."}.';
END
$$;

-- Whether headers are a JSON object of text values that can be sent: reading each as text refuses, with an error of
-- its own, the escapes that no text can hold (\u0000, half of a surrogate pair).
CREATE FUNCTION outbox_headers_fit(headers json) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
    RETURN json_typeof(headers) = 'object' AND NOT EXISTS (
        SELECT FROM json_each(CASE WHEN json_typeof(headers) = 'object' THEN headers END) AS header
        WHERE json_typeof(header.value) <> 'string' OR header.value #>> '{}' IS NULL);
END
$$;

CREATE FUNCTION outbox_before_insert() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    -- Plans live as long as the session and may have been made while the tables were empty.
    SET enable_seqscan = off
    SET enable_bitmapscan = off
AS $$
DECLARE
    lane         bigint;
    remembered   bigint;
    tail         bigint;
    microseconds bigint;
BEGIN
    IF (octet_length(NEW.aggregate_type) BETWEEN 1 AND 512
        AND octet_length(NEW.aggregate_id) BETWEEN 1 AND 512
        AND octet_length(NEW.event_type) BETWEEN 1 AND 512
        AND NEW.event_type !~ '[\s\u0001-\u001f\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]'
        AND NEW.aggregate_type !~ '[\u0001-\u001f\u007f-\u009f]'
        AND NEW.aggregate_id !~ '[\u0001-\u001f\u007f-\u009f]'
        AND (NEW.headers IS NULL OR outbox_headers_fit(NEW.headers))) IS NOT TRUE
    THEN
        PERFORM outbox_refuse(NEW);
    END IF;

    LOOP
        SELECT l.lane_id, l.last_seq INTO lane, remembered
        FROM outbox_lane l
        WHERE l.aggregate_type = NEW.aggregate_type AND l.aggregate_id = NEW.aggregate_id
        FOR UPDATE;
        IF FOUND THEN
            SELECT e.aggregate_seq INTO tail
            FROM outbox e
            WHERE e.aggregate_type = NEW.aggregate_type AND e.aggregate_id = NEW.aggregate_id
            ORDER BY e.aggregate_seq DESC
            LIMIT 1;
            EXIT;
        END IF;
        -- A writer that was first waits here until the other one has committed or given up.
        INSERT INTO outbox_lane (aggregate_type, aggregate_id)
        VALUES (NEW.aggregate_type, NEW.aggregate_id)
        ON CONFLICT DO NOTHING
        RETURNING outbox_lane.lane_id, 0 INTO lane, remembered;
        EXIT WHEN FOUND;
    END LOOP;
    tail := greatest(tail, remembered) + 1;

    IF NEW.aggregate_seq IS NULL THEN
        NEW.aggregate_seq := tail;
    ELSIF NEW.aggregate_seq <> tail
        -- A repeated event is left to the unique constraint and to ON CONFLICT.
        AND NOT EXISTS (SELECT FROM outbox e WHERE e.event_id = NEW.event_id)
    THEN
        RAISE EXCEPTION 'outbox: sequence % does not follow on for aggregate % "%": expected %',
            NEW.aggregate_seq, NEW.aggregate_type, NEW.aggregate_id, tail
            USING ERRCODE = 'check_violation', TABLE = 'outbox', COLUMN = 'aggregate_seq',
                CONSTRAINT = 'outbox_aggregate_seq_follows';
    END IF;

    IF NEW.event_id IS NULL THEN
        -- UUID version 7 with microseconds (RFC 9562, section 6.2, method 3); random bits and variant from version 4.
        microseconds := extract(epoch FROM clock_timestamp()) * 1000000;
        NEW.event_id := encode(overlay(uuid_send(gen_random_uuid()) PLACING int8send(
            (microseconds / 1000 << 16) | x'7000'::bigint | (microseconds % 1000 * 4096 / 1000)) FROM 1 FOR 8), 'hex');
    END IF;
    NEW.id := nextval('outbox_id_seq');
    NEW.lane_id := lane;
    NEW.shard := lane % 64;
    NEW.payload_bytes := octet_length(NEW.payload::text);
    NEW.created_at := coalesce(NEW.created_at, now());
    RETURN NEW;
END
$$;

-- After the row, because ON CONFLICT DO NOTHING runs the BEFORE trigger for rows that it then leaves out.
CREATE FUNCTION outbox_after_insert() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
AS $$
BEGIN
    INSERT INTO outbox_pending (shard, id, lane_id) VALUES (NEW.shard, NEW.id, NEW.lane_id);
    RETURN NULL;
END
$$;

CREATE TRIGGER outbox_before_insert BEFORE INSERT ON outbox
    FOR EACH ROW EXECUTE FUNCTION outbox_before_insert();
CREATE TRIGGER outbox_after_insert AFTER INSERT ON outbox
    FOR EACH ROW EXECUTE FUNCTION outbox_after_insert();

-- Writes one event and returns its event_id. A repeated event_id writes nothing. An older snapshot's collision on the
-- sequence is reported as what it is, a serialization failure (40001): retry the transaction.
CREATE FUNCTION outbox_enqueue(
    aggregate_type text,
    aggregate_id   text,
    event_type     text,
    payload        json,
    headers        json        DEFAULT NULL,
    event_id       uuid        DEFAULT NULL,
    deliver_after  timestamptz DEFAULT NULL,
    expires_at     timestamptz DEFAULT NULL,
    aggregate_seq  bigint      DEFAULT NULL
) RETURNS uuid
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
AS $$
#variable_conflict use_variable
DECLARE
    written  uuid;
    violated text;
BEGIN
    IF current_setting('transaction_isolation') = 'read committed' THEN
        INSERT INTO outbox AS o (aggregate_type, aggregate_id, event_type, payload, headers, event_id,
            deliver_after, expires_at, aggregate_seq)
        VALUES (aggregate_type, aggregate_id, event_type, payload, headers, event_id,
            deliver_after, expires_at, aggregate_seq)
        ON CONFLICT ON CONSTRAINT outbox_event_id_key DO NOTHING
        RETURNING o.event_id INTO written;
    ELSE
        -- The block costs a subtransaction, which is why READ COMMITTED, where the collision cannot be, goes without.
        BEGIN
            INSERT INTO outbox AS o (aggregate_type, aggregate_id, event_type, payload, headers, event_id,
                deliver_after, expires_at, aggregate_seq)
            VALUES (aggregate_type, aggregate_id, event_type, payload, headers, event_id,
                deliver_after, expires_at, aggregate_seq)
            ON CONFLICT ON CONSTRAINT outbox_event_id_key DO NOTHING
            RETURNING o.event_id INTO written;
        EXCEPTION WHEN unique_violation THEN
            GET STACKED DIAGNOSTICS violated = CONSTRAINT_NAME;
            IF violated <> 'outbox_aggregate_seq_key' THEN
                RAISE;
            END IF;
            RAISE EXCEPTION 'outbox: another transaction wrote to aggregate % "%" after this one began',
                aggregate_type, aggregate_id
                USING ERRCODE = 'serialization_failure', HINT = 'Retry the transaction.';
        END;
    END IF;
    RETURN coalesce(written, event_id);
END
$$;

REVOKE ALL ON FUNCTION outbox_refuse, outbox_headers_fit, outbox_before_insert, outbox_after_insert, outbox_enqueue
    FROM PUBLIC;
