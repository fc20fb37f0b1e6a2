-- Everything kept as data, in one snapshot; nothing when the version is known. Without secrets that have expired.
SELECT v.version, d.name, d.settings::text, d.disabled_at IS NOT NULL, d.disabled_reason,
    coalesce(signed.secrets, '{}'), coalesce(signed.expiries, '{}'),
    signed.secrets IS NULL AND EXISTS (SELECT FROM @.outbox_destination_secret s WHERE s.destination = d.name)
FROM @.outbox_destination_version v
LEFT JOIN @.outbox_destination d ON true
LEFT JOIN LATERAL (
    SELECT array_agg(s.secret ORDER BY s.secret_id DESC) AS secrets,
        array_agg(s.expires_at ORDER BY s.secret_id DESC) AS expiries
    FROM @.outbox_destination_secret s
    WHERE s.destination = d.name AND coalesce(s.expires_at > clock_timestamp(), true)
) AS signed ON true
WHERE v.version <> $1
ORDER BY d.name
