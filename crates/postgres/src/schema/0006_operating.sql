-- What people look at, and the commands that change deliveries or remove events.

-- Events with what became of them, one row each. `state` is `pending` while nothing is known, then the least finished
-- state of the event's deliveries; `sent_at` is null until all of them are delivered.
CREATE VIEW outbox_status AS
SELECT
    e.id, e.event_id, e.aggregate_type, e.aggregate_id, e.aggregate_seq, e.event_type, e.created_at,
    CASE WHEN judged.state = 'delivered' THEN sent.sent_at END AS sent_at,
    sent.attempts,
    judged.state
FROM outbox e
CROSS JOIN LATERAL (
    SELECT max(d.sent_at) AS sent_at, coalesce(sum(d.attempts), 0)::integer AS attempts
    FROM outbox_delivery d
    WHERE d.outbox_id = e.id
) AS sent
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN EXISTS (SELECT FROM outbox_pending p WHERE p.shard = e.shard AND p.id = e.id) THEN 'pending'
        ELSE (
            SELECT d.state FROM outbox_delivery d
            WHERE d.outbox_id = e.id
            ORDER BY array_position(ARRAY['held', 'retry', 'waiting', 'dead', 'unrouted', 'expired', 'discarded',
                'delivered'], d.state)
            LIMIT 1)
        END AS state
) AS judged;

-- Unfinished and dead deliveries by destination and state. The recursion jumps from one pair to the next in the
-- index, so its cost is the number of pairs; counting stops at 100,001.
CREATE VIEW outbox_exceptions AS
WITH RECURSIVE pair AS (
    (
        SELECT d.destination, d.state FROM outbox_delivery d
        WHERE d.state IN ('retry', 'waiting', 'held', 'dead', 'unrouted')
        ORDER BY d.destination, d.state
        LIMIT 1
    )
    UNION ALL
    SELECT next.destination, next.state
    FROM pair
    CROSS JOIN LATERAL (
        SELECT d.destination, d.state FROM outbox_delivery d
        WHERE d.state IN ('retry', 'waiting', 'held', 'dead', 'unrouted')
            AND (d.destination, d.state) > (pair.destination, pair.state)
        ORDER BY d.destination, d.state
        LIMIT 1
    ) AS next
)
SELECT
    pair.destination,
    pair.state,
    (
        SELECT count(*) FROM (
            SELECT FROM outbox_delivery d
            WHERE d.state IN ('retry', 'waiting', 'held', 'dead', 'unrouted')
                AND d.destination = pair.destination AND d.state = pair.state
            LIMIT 100001
        ) AS capped
    ) AS deliveries,
    -- Events that wait for their own deliver_after are not late; no more than 1,000 of them are looked past.
    (
        SELECT e.id
        FROM (
            SELECT d.outbox_id FROM outbox_delivery d
            WHERE d.state IN ('retry', 'waiting', 'held', 'dead', 'unrouted')
                AND d.destination = pair.destination AND d.state = pair.state
            ORDER BY d.outbox_id
            LIMIT 1000
        ) AS early
        CROSS JOIN LATERAL (
            SELECT o.id FROM outbox o
            WHERE o.id = early.outbox_id AND coalesce(o.deliver_after <= clock_timestamp(), true)
            OFFSET 0
        ) AS e
        LIMIT 1
    ) AS oldest_id
FROM pair;

-- The oldest events on the to-do list that are not put off, at most one per shard.
CREATE VIEW outbox_oldest_pending AS
SELECT s.shard, oldest.id
FROM outbox_shard s
CROSS JOIN LATERAL (
    SELECT e.id
    FROM (
        SELECT p.id FROM outbox_pending p WHERE p.shard = s.shard ORDER BY p.id LIMIT 1000
    ) AS early
    CROSS JOIN LATERAL (
        SELECT o.id FROM outbox o
        WHERE o.id = early.id AND coalesce(o.deliver_after <= clock_timestamp(), true)
        OFFSET 0
    ) AS e
    LIMIT 1
) AS oldest;

-- The numbers an alert needs, in one row. Counts stop at 100,001, which means "more than 100,000".
CREATE VIEW outbox_health AS
SELECT
    coalesce(extract(epoch FROM clock_timestamp() - late.created_at), 0)::double precision AS lag_seconds,
    late.event_id AS oldest_event,
    (SELECT count(*) FROM (SELECT FROM outbox_pending LIMIT 100001) AS capped) AS pending,
    (SELECT coalesce(sum(r.in_flight), 0) FROM outbox_relay r WHERE r.leased_until >= clock_timestamp()) AS in_flight,
    counted.struggling,
    counted.dead,
    counted.unrouted
FROM (
    SELECT
        least(coalesce(sum(x.deliveries) FILTER (WHERE x.state IN ('retry', 'waiting', 'held')), 0), 100001)::bigint
            AS struggling,
        least(coalesce(sum(x.deliveries) FILTER (WHERE x.state = 'dead'), 0), 100001)::bigint AS dead,
        least(coalesce(sum(x.deliveries) FILTER (WHERE x.state = 'unrouted'), 0), 100001)::bigint AS unrouted
    FROM outbox_exceptions x
) AS counted
LEFT JOIN LATERAL (
    SELECT e.created_at, e.event_id
    FROM (
        SELECT p.id FROM outbox_oldest_pending p
        UNION ALL
        SELECT x.oldest_id FROM outbox_exceptions x WHERE x.state IN ('retry', 'waiting', 'held')
    ) AS oldest
    JOIN outbox e ON e.id = oldest.id
    ORDER BY e.created_at
    LIMIT 1
) AS late ON true;

-- Which deliveries a command is about: those in one of `states` with ids above `after` that meet every condition that
-- is not null, in order of id. Deliveries of one event stay together, so the last one may exceed `at_most`.
CREATE FUNCTION outbox_select_deliveries(
    states text[], after bigint, at_most integer,
    event_ids uuid[], of_destination text, type_like text, of_type text, of_id text,
    created_from timestamptz, created_to timestamptz, sent_before timestamptz
) RETURNS TABLE (outbox_id bigint, destination text, lane_id bigint, shard smallint)
    LANGUAGE sql STABLE
    SET search_path FROM CURRENT
AS $$
    SELECT d.outbox_id, d.destination, d.lane_id, d.shard
    FROM outbox_delivery d
    JOIN outbox e ON e.id = d.outbox_id
    WHERE d.state = ANY (states) AND d.outbox_id > after
        AND (event_ids IS NULL OR e.event_id = ANY (event_ids))
        AND (of_destination IS NULL OR d.destination = of_destination)
        AND (type_like IS NULL OR e.event_type LIKE type_like)
        AND (of_type IS NULL OR e.aggregate_type = of_type)
        AND (of_id IS NULL OR e.aggregate_id = of_id)
        AND (created_from IS NULL OR e.created_at >= created_from)
        AND (created_to IS NULL OR e.created_at < created_to)
        AND (sent_before IS NULL OR d.sent_at < sent_before)
    ORDER BY d.outbox_id
    FETCH FIRST at_most ROWS WITH TIES
$$;

-- Keeps relays from settling, and from handing over, these shards until the transaction ends.
CREATE FUNCTION outbox_lock_shards(shards smallint[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
AS $$
BEGIN
    PERFORM FROM outbox_shard s WHERE s.shard = ANY (shards) ORDER BY s.shard FOR UPDATE;
END
$$;

-- Puts one batch of deliveries back to be sent. What no route matched goes back to the to-do list to be routed anew;
-- relays skip what lies below their floor, so its shard is set free and whoever takes it reads it from the beginning.
CREATE FUNCTION outbox_replay(
    states text[], after bigint, at_most integer,
    event_ids uuid[], of_destination text, type_like text, of_type text, of_id text,
    created_from timestamptz, created_to timestamptz, sent_before timestamptz,
    OUT changed bigint, OUT cursor_id bigint, OUT done boolean
)
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    SET lock_timeout = '30s'
AS $$
DECLARE
    chosen_ids          bigint[];
    chosen_destinations text[];
    chosen_lanes        bigint[];
    chosen_shards       smallint[];
    rerouted            bigint;
BEGIN
    SELECT array_agg(c.outbox_id), array_agg(c.destination), array_agg(c.lane_id), array_agg(c.shard),
        count(*) < at_most, coalesce(max(c.outbox_id), after)
    INTO chosen_ids, chosen_destinations, chosen_lanes, chosen_shards, done, cursor_id
    FROM outbox_select_deliveries(states, after, at_most, event_ids, of_destination, type_like, of_type, of_id,
        created_from, created_to, sent_before) AS c;
    PERFORM outbox_lock_shards(chosen_shards);

    WITH unrouted AS (
        DELETE FROM outbox_delivery d
        USING unnest(chosen_ids, chosen_destinations) AS c(outbox_id, destination)
        WHERE d.outbox_id = c.outbox_id AND d.destination = c.destination
            AND d.state = 'unrouted' AND d.state = ANY (states)
        RETURNING d.outbox_id, d.lane_id, d.shard
    ), back AS (
        INSERT INTO outbox_pending (shard, id, lane_id)
        SELECT u.shard, u.outbox_id, u.lane_id FROM unrouted u
        ON CONFLICT DO NOTHING
    ), free AS (
        UPDATE outbox_shard s SET owner = NULL WHERE s.shard IN (SELECT u.shard FROM unrouted u)
    )
    SELECT count(*) INTO rerouted FROM unrouted;

    UPDATE outbox_delivery d
    SET state = 'waiting', attempts = 0, uncounted = NULL, begun = NULL, replays = d.replays + 1, sent_at = NULL,
        next_attempt_at = NULL
    FROM unnest(chosen_ids, chosen_destinations) AS c(outbox_id, destination)
    WHERE d.outbox_id = c.outbox_id AND d.destination = c.destination AND d.state = ANY (states);
    GET DIAGNOSTICS changed = ROW_COUNT;
    changed := changed + rerouted;
    PERFORM outbox_restore_heads(chosen_lanes, chosen_destinations);
END
$$;

-- Marks one batch of deliveries as discarded.
CREATE FUNCTION outbox_discard(
    states text[], after bigint, at_most integer,
    event_ids uuid[], of_destination text, type_like text, of_type text, of_id text,
    created_from timestamptz, created_to timestamptz, sent_before timestamptz,
    OUT changed bigint, OUT cursor_id bigint, OUT done boolean
)
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    SET lock_timeout = '30s'
AS $$
DECLARE
    chosen_ids          bigint[];
    chosen_destinations text[];
    chosen_lanes        bigint[];
    chosen_shards       smallint[];
BEGIN
    SELECT array_agg(c.outbox_id), array_agg(c.destination), array_agg(c.lane_id), array_agg(c.shard),
        count(*) < at_most, coalesce(max(c.outbox_id), after)
    INTO chosen_ids, chosen_destinations, chosen_lanes, chosen_shards, done, cursor_id
    FROM outbox_select_deliveries(states, after, at_most, event_ids, of_destination, type_like, of_type, of_id,
        created_from, created_to, sent_before) AS c;
    PERFORM outbox_lock_shards(chosen_shards);

    UPDATE outbox_delivery d
    SET state = 'discarded', next_attempt_at = NULL
    FROM unnest(chosen_ids, chosen_destinations) AS c(outbox_id, destination)
    WHERE d.outbox_id = c.outbox_id AND d.destination = c.destination AND d.state = ANY (states);
    GET DIAGNOSTICS changed = ROW_COUNT;
    PERFORM outbox_restore_heads(chosen_lanes, chosen_destinations);
END
$$;

-- Events with ids above `after`, up to `last_id`, that may be removed: written before `before`, not on the to-do list,
-- nothing unfinished, and nothing dead or unrouted unless written before `dead_before`.
CREATE FUNCTION outbox_prunable(after bigint, last_id bigint, before timestamptz, dead_before timestamptz)
RETURNS TABLE (id bigint, shard smallint)
    LANGUAGE sql STABLE
    SET search_path FROM CURRENT
AS $$
    SELECT e.id, e.shard
    FROM outbox e
    WHERE e.id > after AND e.id <= last_id AND e.created_at < before
        AND NOT EXISTS (SELECT FROM outbox_pending p WHERE p.shard = e.shard AND p.id = e.id OFFSET 0)
        AND NOT EXISTS (
            SELECT FROM outbox_delivery d
            WHERE d.outbox_id = e.id
                AND (d.state IN ('retry', 'waiting', 'held')
                    OR d.state IN ('dead', 'unrouted') AND e.created_at >= dead_before)
            OFFSET 0)
    ORDER BY e.id
$$;

-- Removes one batch of events with their deliveries. Looks at ten times as many events as it may remove, in order of
-- id, and is done when it reaches the end or events too young: ids follow the time of writing closely enough.
--
-- Only an aggregate that loses its last event needs its sequence remembered. Lanes are locked in order of lane_id,
-- and before its row is written a writer that has not committed yet is waited for.
CREATE FUNCTION outbox_prune(
    after bigint, at_most integer, older_than_ms bigint, dead_older_than_ms bigint,
    OUT changed bigint, OUT cursor_id bigint, OUT done boolean
)
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    SET enable_seqscan = off
    SET enable_hashjoin = off
    SET enable_mergejoin = off
    SET lock_timeout = '30s'
AS $$
DECLARE
    before      timestamptz := clock_timestamp() - older_than_ms * interval '1 millisecond';
    dead_before timestamptz := clock_timestamp() - greatest(older_than_ms, dead_older_than_ms) * interval '1 millisecond';
    looked_at   bigint;
    last_id     bigint;
    too_young   boolean;
    chosen      bigint[];
    of_shards   smallint[];
BEGIN
    SELECT count(*), coalesce(max(near.id), after) INTO looked_at, last_id
    FROM (SELECT e.id FROM outbox e WHERE e.id > after ORDER BY e.id LIMIT at_most * 10) AS near;
    SELECT e.created_at >= before INTO too_young FROM outbox e WHERE e.id = last_id;
    SELECT coalesce(array_agg(c.id), '{}'), coalesce(array_agg(DISTINCT c.shard), '{}') INTO chosen, of_shards
    FROM (SELECT p.id, p.shard FROM outbox_prunable(after, last_id, before, dead_before) AS p LIMIT at_most) AS c;
    IF cardinality(chosen) = at_most THEN
        cursor_id := chosen[at_most];
        done := false;
    ELSE
        cursor_id := last_id;
        done := looked_at < at_most * 10 OR coalesce(too_young, true);
    END IF;

    -- No replay may bring a delivery back between the look at it and its removal.
    PERFORM FROM outbox_shard s WHERE s.shard = ANY (of_shards) ORDER BY s.shard FOR SHARE;
    SELECT coalesce(array_agg(p.id ORDER BY p.id), '{}') INTO chosen
    FROM outbox_prunable(after, cursor_id, before, dead_before) AS p
    WHERE p.id = ANY (chosen);

    PERFORM FROM outbox_lane l
    WHERE (l.aggregate_type, l.aggregate_id) IN (
        SELECT e.aggregate_type, e.aggregate_id
        FROM outbox e
        WHERE e.id = ANY (chosen)
            AND NOT EXISTS (
                SELECT FROM outbox later
                WHERE later.aggregate_type = e.aggregate_type AND later.aggregate_id = e.aggregate_id
                    AND later.aggregate_seq > e.aggregate_seq)
    )
    ORDER BY l.lane_id
    FOR UPDATE;
    UPDATE outbox_lane l
    SET last_seq = e.aggregate_seq
    FROM outbox e
    WHERE e.id = ANY (chosen)
        AND l.aggregate_type = e.aggregate_type AND l.aggregate_id = e.aggregate_id
        AND l.last_seq < e.aggregate_seq
        AND NOT EXISTS (
            SELECT FROM outbox later
            WHERE later.aggregate_type = e.aggregate_type AND later.aggregate_id = e.aggregate_id
                AND later.aggregate_seq > e.aggregate_seq);

    DELETE FROM outbox_delivery d WHERE d.outbox_id = ANY (chosen);
    DELETE FROM outbox_report r WHERE r.outbox_id = ANY (chosen);
    -- Those of messages that nobody here sent go a batch at a time.
    DELETE FROM outbox_report r WHERE r.ctid = ANY (ARRAY(
        SELECT u.ctid FROM outbox_report u WHERE u.outbox_id IS NULL AND u.received_at < before LIMIT at_most));
    DELETE FROM outbox e WHERE e.id = ANY (chosen);
    GET DIAGNOSTICS changed = ROW_COUNT;
END
$$;

REVOKE ALL ON FUNCTION outbox_select_deliveries, outbox_lock_shards, outbox_replay, outbox_discard, outbox_prunable,
    outbox_prune FROM PUBLIC;
