SELECT r.relay, r.label,
    (SELECT count(*) FROM @.outbox_shard s WHERE s.owner = r.relay),
    (SELECT max(s.epoch) FROM @.outbox_shard s WHERE s.owner = r.relay),
    r.in_flight::bigint, r.started_at,
    extract(epoch FROM r.leased_until - clock_timestamp())::double precision,
    r.destinations_version, r.blocked::text
FROM @.outbox_relay r
ORDER BY r.started_at, r.relay
