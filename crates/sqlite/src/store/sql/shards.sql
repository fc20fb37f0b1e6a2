SELECT s.shard, s.epoch, s.taken_at, r.relay, r.label, r.leased_until
FROM outbox_shard AS s
LEFT JOIN outbox_relay AS r ON r.relay = s.owner
ORDER BY s.shard
