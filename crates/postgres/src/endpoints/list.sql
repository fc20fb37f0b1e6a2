-- What an operator sees: no secret, only when each was added and when it expires.
SELECT d.name, d.settings::text, d.disabled_at, d.disabled_reason, d.created_at, d.updated_at,
    coalesce(signed.added, '{}'), coalesce(signed.expiries, '{}')
FROM @.outbox_destination d
LEFT JOIN LATERAL (
    SELECT array_agg(s.created_at ORDER BY s.secret_id DESC) AS added,
        array_agg(s.expires_at ORDER BY s.secret_id DESC) AS expiries
    FROM @.outbox_destination_secret s
    WHERE s.destination = d.name AND coalesce(s.expires_at > clock_timestamp(), true)
) AS signed ON true
WHERE $1::text IS NULL OR d.name = $1
ORDER BY d.name
