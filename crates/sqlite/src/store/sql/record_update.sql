UPDATE outbox_delivery
SET state = :state,
    attempts = :attempts,
    next_attempt_at = CASE WHEN :keep_next_attempt THEN next_attempt_at ELSE :next_attempt_at END,
    sent_at = :sent_at,
    status = coalesce(:status, status),
    external_id = coalesce(:external_id, external_id),
    uncounted = nullif(:uncounted, 0),
    begun = NULL,
    last_error = CASE WHEN NOT :forget_failure THEN coalesce(:last_error, last_error) END,
    last_class = CASE WHEN NOT :forget_failure THEN coalesce(:last_class, last_class) END,
    history = coalesce(:history, history)
WHERE outbox_id = :id AND destination = :destination
