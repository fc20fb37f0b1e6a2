-- Two events for each of $1 aggregates that nothing else writes to.
INSERT INTO outbox (aggregate_type, aggregate_id, event_type, payload)
SELECT 'blocked', 'b-' || lane, 'order.confirmed', json_build_object('note', repeat('n', 238))
FROM generate_series(1, $1::bigint) AS lane, generate_series(1, 2)
