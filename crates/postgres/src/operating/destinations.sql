-- Destinations with unfinished or dead deliveries. What waits behind a head was not tried and has no failure to show.
SELECT x.destination,
    coalesce(sum(x.deliveries) FILTER (WHERE x.state = 'retry'), 0)::bigint,
    coalesce(sum(x.deliveries) FILTER (WHERE x.state = 'waiting'), 0)::bigint,
    coalesce(sum(x.deliveries) FILTER (WHERE x.state = 'held'), 0)::bigint,
    coalesce(sum(x.deliveries) FILTER (WHERE x.state = 'dead'), 0)::bigint,
    extract(epoch FROM clock_timestamp() - min(oldest.created_at))::double precision,
    (array_agg(failed.last_error ORDER BY failed.at DESC) FILTER (WHERE failed.last_error IS NOT NULL))[1]
FROM @.outbox_exceptions x
LEFT JOIN @.outbox oldest ON oldest.id = x.oldest_id AND x.state IN ('retry', 'waiting', 'held')
LEFT JOIN LATERAL (
    SELECT d.last_error, d.history -> -1 ->> 'at' AS at
    FROM @.outbox_delivery d
    WHERE d.state IN ('retry', 'waiting', 'held', 'dead', 'unrouted')
        AND d.destination = x.destination AND d.state = x.state AND d.last_error IS NOT NULL
    ORDER BY d.outbox_id DESC
    LIMIT 1
) AS failed ON x.state <> 'waiting'
WHERE x.destination <> '' AND x.state <> 'unrouted'
GROUP BY x.destination
ORDER BY x.destination
