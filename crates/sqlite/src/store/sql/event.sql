SELECT id, event_id, lane_id, shard, aggregate_type, aggregate_id, aggregate_seq, event_type,
    CASE WHEN octet_length(payload) <= :inline_bytes THEN payload END AS payload,
    octet_length(payload) AS payload_bytes,
    headers, created_at, deliver_after, expires_at
FROM outbox
WHERE id = :id
