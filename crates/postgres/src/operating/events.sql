-- Events that a selection is about, newest first.
SELECT e.id, e.event_id, e.aggregate_type, e.aggregate_id, e.aggregate_seq, e.event_type, e.created_at,
    coalesce(e.state, 'delivered')
FROM @.outbox_status e
WHERE ($1::uuid[] IS NULL OR e.event_id = ANY ($1))
    AND ($2::text IS NULL OR EXISTS (
        SELECT FROM @.outbox_delivery d WHERE d.outbox_id = e.id AND d.destination = $2))
    AND ($3::text IS NULL OR e.event_type LIKE $3)
    AND ($4::text IS NULL OR e.aggregate_type = $4)
    AND ($5::text IS NULL OR e.aggregate_id = $5)
    AND ($6::timestamptz IS NULL OR e.created_at >= $6)
    AND ($7::timestamptz IS NULL OR e.created_at < $7)
    AND ($8::timestamptz IS NULL OR EXISTS (
        SELECT FROM @.outbox_delivery d WHERE d.outbox_id = e.id AND d.sent_at < $8))
    AND ($9::bigint IS NULL OR e.id < $9)
ORDER BY e.id DESC
LIMIT $10
