SELECT secret, created_at, expires_at
FROM outbox_destination_secret
WHERE destination = :name AND (expires_at IS NULL OR expires_at > :now)
ORDER BY secret_id DESC
