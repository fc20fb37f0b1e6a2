SELECT destination
FROM outbox_delivery
WHERE sent_at IS NULL AND destination > ?1
ORDER BY destination
LIMIT 1
