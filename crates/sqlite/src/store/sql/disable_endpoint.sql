INSERT INTO outbox_destination (name, disabled_at, disabled_reason) VALUES (:name, :now, :reason)
ON CONFLICT (name) DO UPDATE SET disabled_at = excluded.disabled_at, disabled_reason = excluded.disabled_reason
WHERE outbox_destination.disabled_at IS NULL
