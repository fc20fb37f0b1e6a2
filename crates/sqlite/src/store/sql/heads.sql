SELECT destination
FROM outbox_delivery
WHERE lane_id = ?1 AND state IN ('retry', 'held')
ORDER BY destination
