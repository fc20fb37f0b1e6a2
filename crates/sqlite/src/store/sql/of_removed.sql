SELECT outbox_id, lane_id
FROM outbox_delivery
WHERE destination = :destination AND state IN ('retry', 'waiting', 'held', 'dead') AND sent_at IS NULL
LIMIT :limit
