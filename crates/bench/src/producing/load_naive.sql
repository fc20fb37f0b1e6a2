INSERT INTO naive_outbox (event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, payload)
SELECT
    gen_random_uuid(), 'order', 'a-' || n % $3::bigint,
    -- Rows of this statement do not see each other.
    (
        SELECT coalesce(max(e.aggregate_seq), 0) FROM naive_outbox e
        WHERE e.aggregate_type = 'order' AND e.aggregate_id = 'a-' || n % $3::bigint
    ) + (n - $1) / $3 + 1,
    'order.confirmed', $4
FROM generate_series($1::bigint, $2::bigint) AS n
