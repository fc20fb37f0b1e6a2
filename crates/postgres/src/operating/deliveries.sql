-- Deliveries that a selection and states are about, newest first. Those of one event stay together, so that the next
-- page, which begins below the last id, leaves none out.
SELECT e.id, e.event_id, e.event_type, e.aggregate_type, e.aggregate_id, e.aggregate_seq,
    d.destination, d.state, d.attempts::bigint, d.replays::bigint, d.begun::bigint, d.next_attempt_at, d.sent_at, d.status::bigint,
    d.external_id, d.last_error, coalesce(d.history, '[]')::text
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
    AND ($10::bigint IS NULL OR d.outbox_id < $10)
ORDER BY d.outbox_id DESC
FETCH FIRST $11 ROWS WITH TIES
