UPDATE outbox_delivery
SET state = 'delivered', attempts = coalesce(begun, attempts), begun = NULL, sent_at = :now, next_attempt_at = NULL,
    external_id = :external_id
WHERE outbox_id = :id AND destination IN (SELECT value FROM json_each(:destinations))
  AND :attempt BETWEEN 1 AND coalesce(begun, attempts)
  AND (state IN ('retry', 'waiting', 'held') OR state = 'dead' AND last_class = 'unknown')
RETURNING lane_id, destination
