-- As waiting; the head of its lane, which it may be, is then restored. What went wrong before stays on record.
UPDATE outbox_delivery
SET state = 'waiting', attempts = 0, uncounted = NULL, begun = NULL, replays = replays + 1, next_attempt_at = NULL,
    sent_at = NULL
WHERE outbox_id = ?1 AND destination = ?2
