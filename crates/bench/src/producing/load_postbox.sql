INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
SELECT 'order', 'a-' || n % $3::bigint, 'order.confirmed', $4
FROM generate_series($1::bigint, $2::bigint) AS n
