INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
SELECT 'order', 'order-' || lpad(aggregate::text, 3, '0'), 'order.changed', '{}'
FROM generate_series(0, $1::bigint - 1) AS aggregate, generate_series(1, $2::bigint) AS round
ORDER BY CASE WHEN $3::boolean THEN aggregate ELSE round END, aggregate, round
