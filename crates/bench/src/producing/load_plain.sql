INSERT INTO plain_outbox
    (id, aggregate_seq, lane_id, event_id, payload_bytes, shard, aggregate_type, aggregate_id, event_type, payload)
SELECT nextval('outbox_id_seq'), n / $3 + 1, 1, gen_random_uuid(), 250, 1, 'order', 'a-' || n % $3::bigint, 'order.confirmed', $4
FROM generate_series($1::bigint, $2::bigint) AS n
