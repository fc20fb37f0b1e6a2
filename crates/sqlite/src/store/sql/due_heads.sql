SELECT next_attempt_at, lane_id
FROM outbox_delivery
WHERE destination = :destination AND shard = :shard AND state = 'retry' AND next_attempt_at <= :now
ORDER BY next_attempt_at
LIMIT :limit
