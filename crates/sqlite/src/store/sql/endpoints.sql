SELECT name, settings, disabled_at, disabled_reason, created_at, updated_at
FROM outbox_destination
WHERE :name IS NULL OR name = :name
ORDER BY name
