-- Due at once, unless the event itself is put off.
UPDATE outbox_delivery
SET state = 'retry',
    next_attempt_at = max(:now, coalesce((SELECT deliver_after FROM outbox WHERE id = :id), 0))
WHERE outbox_id = :id AND destination = :destination
