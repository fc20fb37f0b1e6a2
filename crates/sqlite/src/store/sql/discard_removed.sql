UPDATE outbox_delivery
SET state = 'discarded', next_attempt_at = NULL, last_class = 'removed', last_error = :reason
WHERE outbox_id = :id AND destination = :destination
