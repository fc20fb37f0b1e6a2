-- Every event and where it stands with a destination, in order of event_id.
SELECT e.event_id, e.lane_id, e.aggregate_seq, e.created_at, d.sent_at, d.state,
    d.state IS NULL AND EXISTS (SELECT 1 FROM outbox_pending p WHERE p.shard = e.lane_id % 64 AND p.id = e.id) AS pending
FROM (
    SELECT id, event_id, lane_id, aggregate_seq, created_at FROM outbox
    WHERE event_id > ?2 ORDER BY event_id LIMIT ?3
) AS e
LEFT JOIN outbox_delivery d ON d.outbox_id = e.id AND d.destination = ?1
ORDER BY e.event_id
