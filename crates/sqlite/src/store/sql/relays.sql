SELECT relay, label, in_flight, started_at, leased_until, destinations_version, blocked,
    (SELECT count(*) FROM outbox_shard WHERE owner = outbox_relay.relay) AS shards,
    (SELECT max(epoch) FROM outbox_shard WHERE owner = outbox_relay.relay) AS epoch
FROM outbox_relay
ORDER BY started_at, relay
