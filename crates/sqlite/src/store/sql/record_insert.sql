-- A record of an event that was pruned meanwhile leaves nothing.
INSERT INTO outbox_delivery (
    outbox_id, destination, lane_id, shard, state, attempts, next_attempt_at, sent_at, status, external_id, last_error,
    last_class, history, uncounted)
SELECT
    :id, :destination, :lane_id, :shard, :state, :attempts, :next_attempt_at, :sent_at, :status, :external_id,
    :last_error, :last_class, :history, nullif(:uncounted, 0)
WHERE EXISTS (SELECT 1 FROM outbox WHERE id = :id)
ON CONFLICT (outbox_id, destination) DO NOTHING
