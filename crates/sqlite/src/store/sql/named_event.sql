SELECT e.id, e.event_id, e.aggregate_id, e.headers ->> :origin AS origin, e.headers ->> '$.tenant' AS tenant
FROM outbox_delivery AS d
JOIN outbox AS e ON e.id = d.outbox_id
WHERE d.external_id = :external_id AND d.destination IN (SELECT value FROM json_each(:destinations))
LIMIT 1
