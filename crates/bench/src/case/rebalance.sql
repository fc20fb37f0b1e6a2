-- From a relay's first heartbeat to the last shard it took, once it owns what the others have too much of.
SELECT extract(epoch FROM max(s.taken_at) - r.started_at)::double precision
FROM outbox_relay r
JOIN outbox_shard s ON s.owner = r.relay
WHERE r.label = $1
GROUP BY r.relay, r.started_at
HAVING count(*) >= 64 - ($2::bigint - 1) * ceil(64.0 / $2::bigint)
