SELECT id, event_id, aggregate_id, headers ->> :origin AS origin, headers ->> '$.tenant' AS tenant
FROM outbox
WHERE event_id = :event_id
