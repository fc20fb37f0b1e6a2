-- Due at once, unless the event itself is put off, or it had a time of its own before an earlier one came ahead.
UPDATE outbox_delivery
SET state = 'retry',
    next_attempt_at = max(:now, coalesce(next_attempt_at, 0), coalesce((SELECT deliver_after FROM outbox WHERE id = :id), 0))
WHERE outbox_id = :id AND destination = :destination
