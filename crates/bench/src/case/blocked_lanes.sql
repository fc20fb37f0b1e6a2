-- Takes everything off the to-do list and blocks its lanes, as a relay leaves them whose destination refused the first
-- event of each: half of the heads wait for a retry a day from now, half for an operator; the rest waits behind them.
WITH blocked AS (
    DELETE FROM outbox_pending RETURNING id
)
INSERT INTO outbox_delivery (outbox_id, lane_id, shard, destination, state, attempts, next_attempt_at, last_class, status)
SELECT
    e.id, e.lane_id, e.shard, $1,
    CASE WHEN e.aggregate_seq > 1 THEN 'waiting' WHEN e.lane_id % 2 = 0 THEN 'retry' ELSE 'held' END,
    CASE WHEN e.aggregate_seq > 1 THEN 0 ELSE 1 END,
    CASE WHEN e.aggregate_seq = 1 AND e.lane_id % 2 = 0 THEN now() + interval '1 day' END,
    CASE WHEN e.aggregate_seq = 1 THEN 'transient' END,
    CASE WHEN e.aggregate_seq = 1 THEN 503 END
FROM blocked
JOIN outbox e USING (id)
