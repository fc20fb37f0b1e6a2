SELECT e.id, e.event_id, e.aggregate_type, e.aggregate_id, e.aggregate_seq, e.event_type, e.created_at,
    coalesce((SELECT s.state FROM outbox_status AS s WHERE s.id = e.id), 'unknown') AS state,
    e.shard, e.deliver_after, e.expires_at, octet_length(e.payload) AS payload_bytes
FROM outbox AS e
