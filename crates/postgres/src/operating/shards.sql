SELECT s.shard, s.epoch, r.relay, r.label,
    extract(epoch FROM clock_timestamp() - s.taken_at)::double precision,
    extract(epoch FROM r.leased_until - clock_timestamp())::double precision
FROM @.outbox_shard s
LEFT JOIN @.outbox_relay r ON r.relay = s.owner
ORDER BY s.shard
