UPDATE naive_outbox
SET locked_until = now() + $2 * interval '1 millisecond', attempts = attempts + 1
WHERE id IN (
    SELECT id FROM naive_outbox
    WHERE status = 'pending' AND (locked_until IS NULL OR locked_until < now())
    ORDER BY aggregate_id, aggregate_seq
    LIMIT $1
    FOR UPDATE SKIP LOCKED
)
RETURNING id, event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, payload::text, attempts
