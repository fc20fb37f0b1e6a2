-- Which relay works on which shard. postbox_core::lease describes the protocol.
--
-- Only the database's clock decides. A relay is evicted by deleting its row while holding the row's lock: a renewal
-- that runs at the same moment either moved the deadline first (then the evictor finds it in the future and leaves the
-- row alone) or finds its row gone. A shard is free exactly when its owner is null, so whether it may be taken is
-- decided on its own row. Shard rows are locked in order of shard, as settles lock them.

-- Sets shards free. The caller must have the right to: it owns them, or deleted their owner's row.
CREATE FUNCTION outbox_free_shards(relays uuid[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
AS $$
BEGIN
    PERFORM FROM outbox_shard s WHERE s.owner = ANY (relays) ORDER BY s.shard FOR UPDATE;
    UPDATE outbox_shard s SET owner = NULL WHERE s.owner = ANY (relays);
END
$$;

-- Joins or renews, evicts, takes free shards up to the fair share. One row: what the relay owns now.
CREATE FUNCTION outbox_heartbeat(
    me uuid, my_label text, ttl_ms bigint, my_in_flight integer, accepting boolean, joined boolean,
    OUT evicted boolean, OUT live integer, OUT shards smallint[], OUT epochs bigint[]
)
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    SET lock_timeout = '5s'
AS $$
DECLARE
    ttl     interval := ttl_ms * interval '1 millisecond';
    expired uuid[];
    owned   integer;
BEGIN
    IF joined THEN
        UPDATE outbox_relay r
        SET leased_until = clock_timestamp() + ttl, in_flight = my_in_flight
        WHERE r.relay = me;
    ELSE
        INSERT INTO outbox_relay AS r (relay, label, started_at, leased_until, in_flight)
        VALUES (me, my_label, clock_timestamp(), clock_timestamp() + ttl, my_in_flight)
        ON CONFLICT (relay) DO UPDATE SET leased_until = clock_timestamp() + ttl, in_flight = my_in_flight;
    END IF;
    evicted := NOT FOUND;
    IF evicted THEN
        live := 0;
        RETURN;
    END IF;

    WITH late AS (
        SELECT r.relay FROM outbox_relay r
        WHERE r.leased_until < clock_timestamp() AND r.relay <> me
        FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM outbox_relay r USING late WHERE r.relay = late.relay RETURNING r.relay
    )
    SELECT array_agg(gone.relay) INTO expired FROM gone;
    IF expired IS NOT NULL THEN
        PERFORM outbox_free_shards(expired);
    END IF;

    SELECT greatest(count(*), 1) INTO live FROM outbox_relay r WHERE r.leased_until >= clock_timestamp();
    SELECT count(*) INTO owned FROM outbox_shard s WHERE s.owner = me;
    IF accepting AND owned < ceil(64.0 / live) THEN
        UPDATE outbox_shard s
        SET owner = me, epoch = s.epoch + 1, taken_at = clock_timestamp()
        FROM (
            SELECT f.shard FROM outbox_shard f
            WHERE f.owner IS NULL
            ORDER BY f.shard
            LIMIT ceil(64.0 / live)::integer - owned
            FOR UPDATE SKIP LOCKED
        ) AS free
        WHERE s.shard = free.shard;
    END IF;

    SELECT coalesce(array_agg(s.shard ORDER BY s.shard), '{}'), coalesce(array_agg(s.epoch ORDER BY s.shard), '{}')
    INTO shards, epochs
    FROM outbox_shard s WHERE s.owner = me;
END
$$;

-- Gives single terms back; those that are not the relay's any more are ignored.
CREATE FUNCTION outbox_hand_back(me uuid, term_shards smallint[], term_epochs bigint[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    SET lock_timeout = '5s'
AS $$
BEGIN
    PERFORM FROM outbox_shard s WHERE s.shard = ANY (term_shards) ORDER BY s.shard FOR UPDATE;
    UPDATE outbox_shard s
    SET owner = NULL
    FROM unnest(term_shards, term_epochs) AS term(shard, epoch)
    WHERE s.shard = term.shard AND s.epoch = term.epoch AND s.owner = me;
END
$$;

-- Gives everything back and removes the relay.
CREATE FUNCTION outbox_leave(me uuid) RETURNS void
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    SET lock_timeout = '5s'
AS $$
BEGIN
    DELETE FROM outbox_relay r WHERE r.relay = me;
    PERFORM outbox_free_shards(ARRAY[me]);
END
$$;

REVOKE ALL ON FUNCTION outbox_free_shards, outbox_heartbeat, outbox_hand_back, outbox_leave FROM PUBLIC;
