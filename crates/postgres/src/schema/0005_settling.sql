-- How outcomes are recorded. One call is one transaction.
--
-- Rows are found by look-ups that cannot be planned otherwise (0004) and changed by their place (ctid), for which
-- there is no other plan either. Nobody moves them in between: whoever changes a shard's rows holds its terms.
--
-- The terms are locked in a statement of their own: whatever waited for an operator's command or a hand-over begins
-- the statements after it with a fresh snapshot. An event's first records are written only together with its removal
-- from the to-do list, so repeating a batch writes nothing twice.

-- Gives each of these lanes the head it must have: its unfinished delivery with the lowest id is `retry` or `held`,
-- all behind it are `waiting`. The caller holds the lanes' shards.
CREATE FUNCTION outbox_restore_heads(lanes bigint[], destinations text[]) RETURNS void
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET enable_hashjoin = off
    SET enable_mergejoin = off
    SET plan_cache_mode = force_generic_plan
AS $$
BEGIN
    UPDATE outbox_delivery d
    SET state = CASE WHEN wrong.is_head THEN 'retry' ELSE 'waiting' END,
        -- Due at once, unless the event itself is put off, or it had a time of its own before an earlier one came ahead.
        next_attempt_at = CASE WHEN wrong.is_head THEN
            greatest(
                clock_timestamp(), d.next_attempt_at, (SELECT e.deliver_after FROM outbox e WHERE e.id = d.outbox_id))
            ELSE d.next_attempt_at
        END
    FROM (
        SELECT DISTINCT lane.lane_id, lane.destination
        FROM unnest(lanes, destinations) AS lane(lane_id, destination)
    ) AS lane
    CROSS JOIN LATERAL (
        SELECT u.ctid AS place, u.outbox_id, u.state
        FROM outbox_delivery u
        WHERE u.lane_id = lane.lane_id AND u.destination = lane.destination
            AND u.state IN ('retry', 'waiting', 'held')
        ORDER BY u.outbox_id
        LIMIT 1
    ) AS head
    CROSS JOIN LATERAL (
        SELECT head.place, true AS is_head WHERE head.state = 'waiting'
        UNION ALL
        SELECT b.ctid, false
        FROM outbox_delivery b
        WHERE b.lane_id = lane.lane_id AND b.destination = lane.destination
            AND b.state IN ('retry', 'held') AND b.outbox_id > head.outbox_id
    ) AS wrong
    WHERE d.ctid = wrong.place;
END
$$;

-- Records a batch and returns the terms it refused, of whose shards nothing was recorded. The arrays r_* are the
-- columns of the records. `r_first`: the event is among the dispatched ones; `plain` promises that all are and that
-- none is left unfinished.
CREATE FUNCTION outbox_settle(
    me uuid, term_shards smallint[], term_epochs bigint[], dispatched_shards smallint[], dispatched_ids bigint[],
    plain boolean, r_first boolean[],
    r_id bigint[], r_lane_id bigint[], r_shard smallint[], r_destination text[], r_state text[], r_attempts integer[],
    r_retry_ms bigint[], r_status smallint[], r_external_id text[],
    r_class text[], r_reason text[], r_answer text[], r_took_ms bigint[],
    r_uncounted integer[], r_withdrawn boolean[]
) RETURNS TABLE (refused_shard smallint, refused_epoch bigint)
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET enable_hashjoin = off
    SET enable_mergejoin = off
    SET plan_cache_mode = force_generic_plan
    SET lock_timeout = '10s'
AS $$
#variable_conflict use_column
DECLARE
    moment   timestamptz := clock_timestamp();
    current  smallint[];
    removed  bigint[];
    complete boolean;
BEGIN
    SELECT coalesce(array_agg(held.shard), '{}') INTO current
    FROM (
        SELECT s.shard
        FROM outbox_shard s
        JOIN unnest(term_shards, term_epochs) AS term(shard, epoch) ON s.shard = term.shard AND s.epoch = term.epoch
        WHERE s.owner = me
        ORDER BY s.shard
        FOR SHARE OF s
    ) AS held;

    WITH gone AS (
        DELETE FROM outbox_pending p
        WHERE p.ctid = ANY (ARRAY(
            SELECT todo.place
            FROM unnest(dispatched_shards, dispatched_ids) AS done(shard, id)
            CROSS JOIN LATERAL (
                SELECT t.ctid AS place FROM outbox_pending t WHERE t.shard = done.shard AND t.id = done.id OFFSET 0
            ) AS todo
            WHERE done.shard = ANY (current)
        ))
        RETURNING p.id
    )
    SELECT coalesce(array_agg(gone.id), '{}') INTO removed FROM gone;
    complete := cardinality(removed) = cardinality(dispatched_ids);

    INSERT INTO outbox_delivery (
        outbox_id, lane_id, shard, destination, state, attempts, status, external_id,
        sent_at, next_attempt_at, last_class, last_error, history, uncounted)
    SELECT
        r.id, r.lane_id, r.shard, r.destination, r.state, r.attempts, r.status, r.external_id,
        CASE WHEN r.state = 'delivered' THEN moment END,
        CASE WHEN r.state = 'retry' THEN moment + r.retry_ms * interval '1 millisecond' END,
        r.class, r.reason,
        CASE WHEN r.class IS NOT NULL THEN jsonb_build_array(jsonb_build_object(
            'at', moment, 'attempt', r.attempts, 'class', r.class, 'status', r.status, 'reason', r.reason,
            'answer', r.answer, 'took_ms', r.took_ms)) END,
        nullif(r.uncounted, 0)
    FROM unnest(r_first, r_id, r_lane_id, r_shard, r_destination, r_state, r_attempts,
            r_retry_ms, r_status, r_external_id, r_class, r_reason, r_answer, r_took_ms, r_uncounted)
        AS r(first, id, lane_id, shard, destination, state, attempts,
            retry_ms, status, external_id, class, reason, answer, took_ms, uncounted)
    WHERE r.first AND (complete OR r.id = ANY (removed))
        AND NOT EXISTS (
            SELECT FROM outbox_delivery d WHERE d.outbox_id = r.id AND d.destination = r.destination OFFSET 0);

    IF NOT plain THEN
        -- Nothing but an unfinished delivery changes, and only if the record knows more of it than the row: what an
        -- operator decided meanwhile stays, and a repeated batch finds its own work done. A record from before an attempt
        -- that was begun knows less, unless it says that this attempt was not made.
        UPDATE outbox_delivery d
        SET state = r.state,
            attempts = r.attempts,
            sent_at = CASE WHEN r.state = 'delivered' THEN moment END,
            next_attempt_at = CASE WHEN r.state = 'retry' THEN moment + r.retry_ms * interval '1 millisecond' END,
            status = CASE WHEN r.attempts > d.attempts THEN r.status ELSE d.status END,
            external_id = coalesce(r.external_id, d.external_id),
            uncounted = nullif(r.uncounted, 0),
            begun = NULL,
            last_class = CASE WHEN NOT r.withdrawn OR r.attempts > d.attempts THEN coalesce(r.class, d.last_class) END,
            last_error = CASE WHEN NOT r.withdrawn OR r.attempts > d.attempts THEN coalesce(r.reason, d.last_error) END,
            history = CASE WHEN r.class IS NULL OR r.attempts = d.attempts THEN d.history
                ELSE CASE WHEN jsonb_array_length(d.history) >= 20 THEN d.history - 0
                        ELSE coalesce(d.history, '[]') END
                    || jsonb_build_object(
                        'at', moment, 'attempt', r.attempts, 'class', r.class, 'status', r.status, 'reason', r.reason,
                        'answer', r.answer, 'took_ms', r.took_ms) END
        FROM unnest(r_first, r_id, r_shard, r_destination, r_state, r_attempts,
                r_retry_ms, r_status, r_external_id, r_class, r_reason, r_answer, r_took_ms, r_uncounted, r_withdrawn)
            AS r(first, id, shard, destination, state, attempts,
                retry_ms, status, external_id, class, reason, answer, took_ms, uncounted, withdrawn)
        CROSS JOIN LATERAL (
            -- Without a condition on the state, for which a partial index could be mistaken.
            SELECT k.ctid AS place, k.state, k.attempts, k.begun
            FROM outbox_delivery k
            WHERE k.outbox_id = r.id AND k.destination = r.destination
            OFFSET 0
        ) AS known
        WHERE NOT r.first AND r.shard = ANY (current) AND d.ctid = known.place
            AND known.state IN ('retry', 'waiting', 'held')
            AND (known.begun IS NULL OR r.attempts >= known.begun OR r.withdrawn AND r.attempts = known.begun - 1)
            AND (r.attempts > known.attempts
                OR r.attempts = known.attempts AND (r.class IS NULL OR r.state <> known.state));

        PERFORM outbox_restore_heads(array_agg(r.lane_id), array_agg(r.destination))
        FROM unnest(r_first, r_lane_id, r_shard, r_destination, r_state) AS r(first, lane_id, shard, destination, state)
        WHERE r.shard = ANY (current) AND (NOT r.first OR r.state IN ('retry', 'waiting', 'held'));
    END IF;

    RETURN QUERY
    SELECT term.shard, term.epoch
    FROM unnest(term_shards, term_epochs) AS term(shard, epoch)
    WHERE term.shard <> ALL (current);
END
$$;

-- Commits that an attempt begins, under the term it was decided on: postbox_core::store::Store::begin. An attempt that was
-- begun before and of which nothing was recorded becomes history.
CREATE FUNCTION outbox_begin(
    me uuid, of_shard smallint, of_epoch bigint, of_id bigint, of_destination text, attempt integer, decide_ms bigint
) RETURNS boolean
    LANGUAGE plpgsql
    SET search_path FROM CURRENT
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET enable_hashjoin = off
    SET enable_mergejoin = off
    SET plan_cache_mode = force_generic_plan
    SET lock_timeout = '10s'
AS $$
DECLARE
    moment timestamptz := clock_timestamp();
BEGIN
    PERFORM FROM outbox_shard s WHERE s.shard = of_shard AND s.epoch = of_epoch AND s.owner = me FOR SHARE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE outbox_delivery d
    SET begun = attempt,
        attempts = CASE WHEN known.begun < attempt THEN known.begun ELSE d.attempts END,
        next_attempt_at = moment + decide_ms * interval '1 millisecond',
        last_class = 'unknown',
        last_error = format('attempt %s began; what became of it is not known yet', attempt),
        history = CASE WHEN known.begun < attempt THEN
            CASE WHEN jsonb_array_length(d.history) >= 20 THEN d.history - 0 ELSE coalesce(d.history, '[]') END
                || jsonb_build_object(
                    'at', moment, 'attempt', known.begun, 'class', 'unknown', 'status', NULL,
                    'reason', 'it began, and nothing more was heard of it', 'answer', NULL, 'took_ms', 0)
            ELSE d.history END
    FROM (
        -- Without a condition on the state, for which a partial index could be mistaken.
        SELECT k.ctid AS place, k.state, k.attempts, k.begun
        FROM outbox_delivery k
        WHERE k.outbox_id = of_id AND k.destination = of_destination
        OFFSET 0
    ) AS known
    WHERE d.ctid = known.place AND known.state = 'retry'
        AND (coalesce(known.begun, known.attempts) < attempt OR known.begun = attempt);
    RETURN FOUND;
END
$$;

REVOKE ALL ON FUNCTION outbox_restore_heads, outbox_settle, outbox_begin FROM PUBLIC;
