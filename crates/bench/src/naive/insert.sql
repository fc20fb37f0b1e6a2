INSERT INTO naive_outbox (event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, payload)
SELECT $1, $2, $3, coalesce(max(aggregate_seq), 0) + 1, $4, $5
FROM naive_outbox
WHERE aggregate_type = $2 AND aggregate_id = $3
RETURNING aggregate_seq
