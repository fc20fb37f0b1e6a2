UPDATE outbox_delivery
SET begun = :attempt,
    attempts = coalesce(:earlier, attempts),
    next_attempt_at = :decide_at,
    last_class = :last_class,
    last_error = :last_error,
    history = coalesce(:history, history)
WHERE outbox_id = :id AND destination = :destination
