-- Every event and where it stands with a destination, in order of event_id.
SELECT e.event_id, e.lane_id, e.aggregate_seq, e.created_at, d.sent_at, d.state,
    d.state IS NULL AND EXISTS (SELECT FROM @.outbox_pending p WHERE p.shard = e.shard AND p.id = e.id)
FROM (
    SELECT o.id, o.event_id, o.lane_id, o.aggregate_seq, o.created_at, o.shard
    FROM @.outbox o
    WHERE $2::uuid IS NULL OR o.event_id > $2
    ORDER BY o.event_id
    LIMIT $3
) AS e
LEFT JOIN @.outbox_delivery d ON d.outbox_id = e.id AND d.destination = $1
ORDER BY e.event_id
