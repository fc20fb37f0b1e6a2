INSERT INTO plain_outbox
    (id, aggregate_seq, lane_id, event_id, payload_bytes, shard, aggregate_type, aggregate_id, event_type, payload)
VALUES (nextval('outbox_id_seq'), $1, 1, $2, 250, 1, $3, $4, $5, $6)
