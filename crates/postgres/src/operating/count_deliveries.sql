-- How many deliveries a selection and states are about.
SELECT count(*)
FROM @.outbox_delivery d
JOIN @.outbox e ON e.id = d.outbox_id
WHERE ($1::uuid[] IS NULL OR e.event_id = ANY ($1))
    AND ($2::text IS NULL OR d.destination = $2)
    AND ($3::text IS NULL OR e.event_type LIKE $3)
    AND ($4::text IS NULL OR e.aggregate_type = $4)
    AND ($5::text IS NULL OR e.aggregate_id = $5)
    AND ($6::timestamptz IS NULL OR e.created_at >= $6)
    AND ($7::timestamptz IS NULL OR e.created_at < $7)
    AND ($8::timestamptz IS NULL OR d.sent_at < $8)
    AND d.state = ANY ($9)
