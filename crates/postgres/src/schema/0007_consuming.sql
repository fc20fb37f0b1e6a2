-- The consumer's half: an event's id is written in the transaction that acts on the event, so that both commit or
-- neither does. Needs nothing of the migrations before it: a consumer's own database gets this one alone.

CREATE TABLE IF NOT EXISTS inbox (
    consumer        text        COLLATE "C" NOT NULL,
    event_id        uuid        NOT NULL,
    received_at     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT inbox_pkey PRIMARY KEY (consumer, event_id)
);
ALTER TABLE inbox
    ADD COLUMN position bigint GENERATED ALWAYS AS IDENTITY,
    ADD CONSTRAINT inbox_position_key UNIQUE (position),
    ADD CONSTRAINT inbox_consumer_length CHECK (octet_length(consumer) BETWEEN 1 AND 100);
COMMENT ON TABLE inbox IS 'One row per event that a consumer has processed, written in the transaction of its effect.';
COMMENT ON COLUMN inbox.consumer IS 'Who processed it: each consumer of a database has a name, and acts on an event once.';
COMMENT ON COLUMN inbox.position IS 'Order of acceptance: of two events, the one that had to wait for the other has the higher one.';

-- How far each aggregate has come, for consumers that check the sequence. One row per aggregate, kept for ever.
CREATE TABLE inbox_sequence (
    last_seq        bigint      NOT NULL,
    consumer        text        COLLATE "C" NOT NULL,
    aggregate_type  text        COLLATE "C" NOT NULL,
    aggregate_id    text        COLLATE "C" NOT NULL,
    CONSTRAINT inbox_sequence_pkey PRIMARY KEY (consumer, aggregate_type, aggregate_id)
) WITH (fillfactor = 70);
COMMENT ON COLUMN inbox_sequence.last_seq IS 'Highest sequence accepted.';

-- What pruning was last told to keep: without it, a row that is gone could not be told from one that never was.
CREATE TABLE outbox_retention (
    scope           text        COLLATE "C" PRIMARY KEY CHECK (scope IN ('outbox', 'inbox')),
    keep_ms         bigint      NOT NULL,
    complete_since  timestamptz NOT NULL
);
COMMENT ON COLUMN outbox_retention.keep_ms IS 'How long the last pruning left rows in place; for the outbox, those it keeps longest (dead letters).';
COMMENT ON COLUMN outbox_retention.complete_since IS 'Whatever was written at this moment or later is still there.';

-- Says whether this consumer meets the event for the first time: 'first', and it is remembered if the transaction
-- commits; or 'duplicate', and there is nothing to do.
--
-- Of several transactions with one event, one goes on and the others wait for its end: then they see 'duplicate' if it
-- committed, and the next of them 'first' if it did not. In REPEATABLE READ and SERIALIZABLE, an event that was
-- accepted after the snapshot was taken is reported as a serialization failure (40001): run the transaction again.
CREATE FUNCTION inbox_accept(consumer text, event_id uuid) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
AS $$
#variable_conflict use_variable
BEGIN
    INSERT INTO inbox (consumer, event_id) VALUES (consumer, event_id)
    ON CONFLICT ON CONSTRAINT inbox_pkey DO NOTHING;
    RETURN CASE WHEN FOUND THEN 'first' ELSE 'duplicate' END;
END
$$;

-- The same, and checks the place of the event in its aggregate against what this consumer has accepted before:
-- 'next' follows on; 'gap' is ahead, what lies between never came; 'stale' is behind an event accepted earlier;
-- 'duplicate' was accepted before. All but the duplicate are remembered; a consumer that does not want a gap or a stale
-- event rolls back.
CREATE FUNCTION inbox_accept(
    consumer       text,
    event_id       uuid,
    aggregate_type text,
    aggregate_id   text,
    aggregate_seq  bigint
) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path FROM CURRENT
    -- Plans live as long as the session and may have been made while the tables were empty.
    SET enable_seqscan = off
    SET enable_bitmapscan = off
AS $$
#variable_conflict use_variable
DECLARE
    last bigint;
BEGIN
    IF aggregate_seq IS NULL OR aggregate_seq < 1 THEN
        RAISE EXCEPTION 'inbox: an aggregate_seq is 1 or more, not %', coalesce(aggregate_seq::text, 'null')
            USING ERRCODE = 'check_violation', TABLE = 'inbox_sequence', COLUMN = 'aggregate_seq',
                CONSTRAINT = 'inbox_aggregate_seq_positive';
    END IF;
    IF inbox_accept(consumer, event_id) = 'duplicate' THEN
        RETURN 'duplicate';
    END IF;
    LOOP
        SELECT s.last_seq INTO last
        FROM inbox_sequence s
        WHERE s.consumer = consumer AND s.aggregate_type = aggregate_type AND s.aggregate_id = aggregate_id
        FOR UPDATE;
        IF FOUND THEN
            UPDATE inbox_sequence s
            SET last_seq = aggregate_seq
            WHERE s.consumer = consumer AND s.aggregate_type = aggregate_type AND s.aggregate_id = aggregate_id
                AND s.last_seq < aggregate_seq;
            EXIT;
        END IF;
        INSERT INTO inbox_sequence (consumer, aggregate_type, aggregate_id, last_seq)
        VALUES (consumer, aggregate_type, aggregate_id, aggregate_seq)
        ON CONFLICT ON CONSTRAINT inbox_sequence_pkey DO NOTHING;
        IF FOUND THEN
            last := 0;
            EXIT;
        END IF;
    END LOOP;
    RETURN CASE
        WHEN aggregate_seq = last + 1 THEN 'next'
        WHEN aggregate_seq > last THEN 'gap'
        ELSE 'stale'
    END;
END
$$;

-- Remembers what pruning keeps, before it removes anything.
CREATE FUNCTION outbox_remember_retention(scope text, keep_ms bigint, complete_ms bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
AS $$
#variable_conflict use_variable
BEGIN
    INSERT INTO outbox_retention AS r (scope, keep_ms, complete_since)
    VALUES (scope, keep_ms, clock_timestamp() - complete_ms * interval '1 millisecond')
    ON CONFLICT ON CONSTRAINT outbox_retention_pkey DO UPDATE
    SET keep_ms = EXCLUDED.keep_ms, complete_since = greatest(r.complete_since, EXCLUDED.complete_since);
END
$$;

-- Forgets one batch of events that were received long ago. Looks at the rows in order of acceptance and is done when
-- it reaches the end or one that is too young.
CREATE FUNCTION inbox_prune(
    after bigint, at_most integer, older_than_ms bigint,
    OUT changed bigint, OUT cursor_id bigint, OUT done boolean
)
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    SET enable_seqscan = off
    SET lock_timeout = '30s'
AS $$
DECLARE
    before    timestamptz := clock_timestamp() - older_than_ms * interval '1 millisecond';
    looked_at bigint;
    youngest  timestamptz;
BEGIN
    PERFORM outbox_remember_retention('inbox', older_than_ms, older_than_ms);
    SELECT count(*), coalesce(max(near.position), after), max(near.received_at) INTO looked_at, cursor_id, youngest
    FROM (
        SELECT i.position, i.received_at FROM inbox i WHERE i.position > after ORDER BY i.position LIMIT at_most
    ) AS near;
    DELETE FROM inbox i WHERE i.position > after AND i.position <= cursor_id AND i.received_at < before;
    GET DIAGNOSTICS changed = ROW_COUNT;
    done := looked_at < at_most OR youngest >= before;
END
$$;

REVOKE ALL ON FUNCTION inbox_accept(text, uuid), inbox_accept(text, uuid, text, text, bigint),
    outbox_remember_retention, inbox_prune FROM PUBLIC;
