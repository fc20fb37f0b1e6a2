UPDATE outbox_delivery
SET state = :state,
    attempts = :attempts,
    next_attempt_at = CASE WHEN :keep_next_attempt THEN next_attempt_at ELSE :next_attempt_at END,
    sent_at = :sent_at,
    status = coalesce(:status, status),
    external_id = coalesce(:external_id, external_id),
    last_error = coalesce(:last_error, last_error),
    last_class = coalesce(:last_class, last_class),
    history = coalesce(:history, history)
WHERE outbox_id = :id AND destination = :destination
