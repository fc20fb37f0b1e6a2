INSERT INTO naive_outbox (event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, payload)
SELECT gen_random_uuid(), 'order', 'order-' || lpad(aggregate::text, 3, '0'), round, 'order.changed', '{}'
FROM generate_series(0, $1::bigint - 1) AS aggregate, generate_series(1, $2::bigint) AS round
ORDER BY CASE WHEN $3::boolean THEN aggregate ELSE round END, aggregate, round
