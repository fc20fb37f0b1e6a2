INSERT INTO outbox_retention (scope, keep_ms, complete_since) VALUES (:scope, :keep_ms, :complete_since)
ON CONFLICT (scope) DO UPDATE
SET keep_ms = excluded.keep_ms, complete_since = max(complete_since, excluded.complete_since)
