UPDATE outbox_delivery
SET state = 'discarded', next_attempt_at = NULL
WHERE outbox_id = ?1 AND destination = ?2 AND state NOT IN ('delivered', 'discarded')
