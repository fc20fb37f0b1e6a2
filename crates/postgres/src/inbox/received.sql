-- What a consumer has received, in order of event_id.
SELECT i.event_id, i.position, i.received_at
FROM @.inbox i
WHERE i.consumer = $1 AND ($2::uuid IS NULL OR i.event_id > $2)
ORDER BY i.event_id
LIMIT $3
