SELECT begun, history
FROM outbox_delivery
WHERE outbox_id = :id AND destination = :destination AND state = 'retry'
  AND (coalesce(begun, attempts) < :attempt OR begun = :attempt)
  AND EXISTS (SELECT 1 FROM outbox_shard WHERE shard = :shard AND epoch = :epoch AND owner = :relay)
