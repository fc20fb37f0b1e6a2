SELECT event.id
FROM outbox AS event
JOIN outbox_pending AS pending ON pending.shard = :shard AND pending.id = event.id
WHERE event.lane_id = :lane_id AND event.aggregate_seq > :after_seq
ORDER BY event.aggregate_seq
LIMIT :limit
