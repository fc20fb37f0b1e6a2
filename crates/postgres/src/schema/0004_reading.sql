-- How the relay reads. postbox_core::store describes floor and cursor.
--
-- Each function switches off the plans that are right for today's statistics and ruinous for tomorrow's: the to-do
-- list is empty one minute and millions long the next, nobody analyses it in between, and a plan made while it was
-- empty is kept by the session. Switches alone do not do: for a table believed empty, reading all of it by index is
-- as good as a look-up. So every look-up per row is a subquery with OFFSET 0, which the planner must not flatten into
-- a join: inside, the keys are plain conditions, and nothing but the index on them is left to choose.

-- An event as the relay reads it. A column that is not asked for is not computed.
CREATE VIEW outbox_arrival AS
SELECT
    e.id, e.event_id, e.lane_id, e.shard, e.aggregate_type, e.aggregate_id, e.aggregate_seq, e.event_type,
    -- Larger payloads are read when their turn comes; payload_bytes spares decompressing them to find out.
    CASE WHEN e.payload_bytes <= 8192 THEN e.payload::text END AS payload,
    e.payload_bytes,
    e.headers::text AS headers,
    e.created_at,
    -- greatest() ignores a null: without the column, zero.
    greatest(extract(epoch FROM e.deliver_after - clock_timestamp()), 0)::double precision AS due_in,
    CASE WHEN e.expires_at IS NOT NULL THEN
        greatest(extract(epoch FROM e.expires_at - clock_timestamp()), 0)::double precision
    END AS expires_in,
    ARRAY(
        SELECT d.destination FROM outbox_delivery d
        WHERE d.lane_id = e.lane_id AND d.state IN ('retry', 'held')
    ) AS blocked
FROM outbox e;

-- What the floor is computed from: the oldest transaction still running, and, when ids beyond `known_id` were drawn,
-- a new mark. Every producer has its transaction id before it draws an event's id, and the mark's transaction id is
-- drawn after reading the sequence: once no transaction older than it runs, every id up to `last_id` is decided.
-- (The snapshot's xmax would not do: it bounds the finished transactions, not the running ones.) `writers`, when asked
-- for: the transactions that have locked `outbox` for writing, which every producer does before it draws an id and until
-- it ends; null stands for a prepared one.
CREATE FUNCTION outbox_horizon(
    known_id bigint, with_writers boolean,
    OUT oldest_running bigint, OUT last_id bigint, OUT mark bigint, OUT writers text[]
)
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
AS $$
BEGIN
    oldest_running := pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
    SELECT CASE WHEN q.is_called THEN q.last_value ELSE 0 END INTO last_id FROM outbox_id_seq q;
    IF last_id > known_id THEN
        mark := pg_current_xact_id()::text::bigint;
    END IF;
    IF with_writers THEN
        SELECT coalesce(array_agg(CASE WHEN l.pid IS NOT NULL THEN l.virtualtransaction END), '{}') INTO writers
        FROM pg_locks l
        WHERE l.locktype = 'relation' AND l.relation = 'outbox'::regclass AND l.mode = 'RowExclusiveLock' AND l.granted
            AND l.database = (SELECT b.oid FROM pg_database b WHERE b.datname = current_database());
    END IF;
END
$$;

CREATE FUNCTION outbox_scan(
    shards smallint[], floors bigint[], cursors bigint[],
    rows_per_shard integer, rows_per_lane integer, saturated bigint[]
) RETURNS TABLE (
    found_shard smallint, found_id bigint, found_lane_id bigint, beyond_cursor boolean,
    id bigint, event_id uuid, lane_id bigint, shard smallint, aggregate_type text, aggregate_id text,
    aggregate_seq bigint, event_type text, payload text, payload_bytes integer, headers text, created_at timestamptz,
    due_in double precision, expires_in double precision, blocked text[]
)
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET enable_hashjoin = off
    SET enable_mergejoin = off
    SET plan_cache_mode = force_generic_plan
    SET work_mem = '32MB'
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT
        todo.shard, todo.id, todo.lane_id, todo.beyond_cursor,
        e.id, e.event_id, e.lane_id, e.shard, e.aggregate_type, e.aggregate_id, e.aggregate_seq, e.event_type,
        e.payload, e.payload_bytes, e.headers, e.created_at, e.due_in, e.expires_in, e.blocked
    FROM (
        SELECT known.shard, known.id, known.lane_id, false AS beyond_cursor, false AS with_event
        FROM unnest(shards, floors, cursors) AS asked(shard, floor, cursor)
        CROSS JOIN LATERAL (
            SELECT p.shard, p.id, p.lane_id
            FROM outbox_pending p
            WHERE p.shard = asked.shard AND p.id > asked.floor AND p.id <= asked.cursor
            OFFSET 0
        ) AS known
        WHERE known.lane_id NOT IN (SELECT unnest(saturated))
        UNION ALL
        SELECT fresh.shard, fresh.id, fresh.lane_id, true,
            row_number() OVER (PARTITION BY fresh.lane_id ORDER BY fresh.id) <= rows_per_lane
                AND fresh.lane_id NOT IN (SELECT unnest(saturated))
        FROM unnest(shards, floors, cursors) AS asked(shard, floor, cursor)
        CROSS JOIN LATERAL (
            SELECT p.shard, p.id, p.lane_id
            FROM outbox_pending p
            WHERE p.shard = asked.shard AND p.id > greatest(asked.floor, asked.cursor)
            ORDER BY p.id
            LIMIT rows_per_shard
        ) AS fresh
    ) AS todo
    LEFT JOIN LATERAL (
        SELECT a.* FROM outbox_arrival a WHERE a.id = todo.id AND todo.with_event
        OFFSET 0
    ) AS e ON true;
END
$$;

-- Events of the to-do list by id.
CREATE FUNCTION outbox_load(shards smallint[], ids bigint[]) RETURNS SETOF outbox_arrival
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET enable_hashjoin = off
    SET enable_mergejoin = off
    SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    RETURN QUERY
    SELECT a.*
    FROM unnest(shards, ids) AS asked(shard, id)
    CROSS JOIN LATERAL (
        SELECT p.id FROM outbox_pending p WHERE p.shard = asked.shard AND p.id = asked.id OFFSET 0
    ) AS todo
    CROSS JOIN LATERAL (
        SELECT e.* FROM outbox_arrival e WHERE e.id = todo.id OFFSET 0
    ) AS a;
END
$$;

-- The next events of one aggregate that are on the to-do list, in order.
CREATE FUNCTION outbox_refill(of_shard smallint, of_type text, of_id text, after_seq bigint, at_most integer)
RETURNS SETOF outbox_arrival
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET enable_hashjoin = off
    SET enable_mergejoin = off
    SET enable_sort = off
    SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    RETURN QUERY
    SELECT a.*
    FROM (
        SELECT e.id
        FROM outbox e
        WHERE e.aggregate_type = of_type AND e.aggregate_id = of_id AND e.aggregate_seq > after_seq
            AND EXISTS (SELECT FROM outbox_pending p WHERE p.shard = of_shard AND p.id = e.id OFFSET 0)
        ORDER BY e.aggregate_seq
        LIMIT at_most
    ) AS next
    CROSS JOIN LATERAL (
        SELECT e.* FROM outbox_arrival e WHERE e.id = next.id OFFSET 0
    ) AS a
    ORDER BY a.aggregate_seq;
END
$$;

-- Lanes whose head is due, the longest due first per destination, each with its first few unfinished deliveries.
CREATE FUNCTION outbox_due(shards smallint[], destinations text[], lanes integer[], rows_per_lane integer)
RETURNS TABLE (
    id bigint, event_id uuid, lane_id bigint, shard smallint, aggregate_type text, aggregate_id text,
    aggregate_seq bigint, event_type text, payload text, payload_bytes integer, headers text, created_at timestamptz,
    due_in double precision, expires_in double precision, destination text, state text, attempts integer,
    uncounted integer, replays integer, last_class text
)
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET enable_hashjoin = off
    SET enable_mergejoin = off
    SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := clock_timestamp();
BEGIN
    RETURN QUERY
    SELECT
        e.id, e.event_id, e.lane_id, e.shard, e.aggregate_type, e.aggregate_id,
        e.aggregate_seq, e.event_type, e.payload, e.payload_bytes, e.headers, e.created_at,
        greatest(extract(epoch FROM parked.next_attempt_at - moment), e.due_in)::double precision, e.expires_in,
        parked.destination, parked.state, parked.attempts, parked.uncounted, parked.replays, parked.last_class
    FROM (
        -- Of many destinations few have anything parked: one probe each instead of one for each shard.
        SELECT w.destination, w.lanes
        FROM unnest(destinations, lanes) AS w(destination, lanes)
        CROSS JOIN LATERAL (
            SELECT 1 FROM outbox_delivery d WHERE d.destination = w.destination AND d.state = 'retry' LIMIT 1
        ) AS anything
    ) AS wanted
    CROSS JOIN LATERAL (
        SELECT candidate.lane_id, candidate.next_attempt_at
        FROM unnest(shards) AS mine(shard)
        CROSS JOIN LATERAL (
            SELECT d.lane_id, d.next_attempt_at
            FROM outbox_delivery d
            WHERE d.destination = wanted.destination AND d.shard = mine.shard AND d.state = 'retry'
                AND d.next_attempt_at <= moment
            ORDER BY d.next_attempt_at
            LIMIT wanted.lanes
        ) AS candidate
        ORDER BY candidate.next_attempt_at
        LIMIT wanted.lanes
    ) AS head
    CROSS JOIN LATERAL (
        SELECT d.outbox_id, d.destination, d.state, coalesce(d.begun, d.attempts) AS attempts,
            coalesce(d.uncounted, 0) AS uncounted, d.replays, d.last_class, d.next_attempt_at
        FROM outbox_delivery d
        WHERE d.lane_id = head.lane_id AND d.destination = wanted.destination
            AND d.state IN ('retry', 'waiting', 'held')
        ORDER BY d.outbox_id
        LIMIT rows_per_lane
    ) AS parked
    CROSS JOIN LATERAL (
        SELECT a.* FROM outbox_arrival a WHERE a.id = parked.outbox_id OFFSET 0
    ) AS e;
END
$$;

REVOKE ALL ON FUNCTION outbox_horizon, outbox_scan, outbox_load, outbox_refill, outbox_due FROM PUBLIC;
