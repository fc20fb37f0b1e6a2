SELECT id, lane_id
FROM outbox_pending
WHERE shard = :shard AND id > :above AND id <= :up_to
ORDER BY id
LIMIT :limit
