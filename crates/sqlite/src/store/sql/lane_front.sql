SELECT outbox_id, state, coalesce(begun, attempts) AS attempts, coalesce(uncounted, 0) AS uncounted, replays, next_attempt_at, last_class
FROM outbox_delivery
WHERE lane_id = :lane_id AND destination = :destination AND state IN ('retry', 'waiting', 'held')
ORDER BY outbox_id
LIMIT :limit
