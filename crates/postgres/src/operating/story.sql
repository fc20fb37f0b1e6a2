-- One event, without what it says.
SELECT s.id, s.event_id, s.aggregate_type, s.aggregate_id, s.aggregate_seq, s.event_type, s.created_at,
    coalesce(s.state, 'delivered'), e.shard, e.deliver_after, e.expires_at, e.payload_bytes::bigint
FROM @.outbox_status s
JOIN @.outbox e ON e.id = s.id
WHERE s.event_id = $1
